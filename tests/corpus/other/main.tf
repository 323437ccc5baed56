variable "model" { 
  default = "org/m"
}
locals { 
  tp = 8 
}
resource "aws_instance" "g" {
  instance_type = "p5.48xlarge"
  user_data = <<-EOT
    #!/bin/bash
    docker run --gpus all lmsysorg/sglang:v0.5.9 \
      python3 -m sglang.launch_server --model-path ${var.model} --tp ${local.tp} \
      --port $${PORT} --page-sise 64
    %{ if x ~}
    echo
    %{ endif ~}
  EOT
  provisioner "remote-exec" {
    inline = [
      "export A=1",
      "sglang serve m --tp 2 &",
    ]
  }
  provisioner "local-exec" { command = "sglang serve k --tp ${var.unknown}" }
}
resource "kubernetes_deployment" "d" {
  spec { template { spec { container {
    image   = "lmsysorg/sglang:v0.5.9"
    command = ["python3", "-m", "sglang.launch_server"]
    args    = ["--model-path", var.model, "--tp", "8", "--page-sise", "64"]
    env { 
      name = "A" 
      value = "b" 
    }
    resources { limits = { "nvidia.com/gpu" = 8 } }
  } } } }
}
resource "google_compute_instance" "x" {
  machine_type = "a3-highgpu-8g"
  metadata = {
    startup-script = <<EOF
sglang serve z --tp 2
EOF
    user-data = <<EOT
#cloud-config
runcmd:
  - sglang serve cc --tp 2
EOT
  }
}
resource "aws_ecs_task_definition" "t" {
  container_definitions = jsonencode([{ name = "x", image = "lmsysorg/sglang:v0.5.9", command = ["sglang", "serve", "m"], environment = [{ name = "A", value = "b" }] }])
}
output "hint" { value = "sglang serve no" }
