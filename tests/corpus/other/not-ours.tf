# sglang is only spoken of here
resource "aws_instance" "proxy" {
  tags      = { Name = "in front of sglang serve m" }
  user_data = <<-EOF
    #!/bin/bash
    echo "sglang serve m --tp 2 is started elsewhere"
  EOF
}
output "how" {
  value = "python -m sglang.launch_server --tp 2"
}
