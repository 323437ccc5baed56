import subprocess

import modal

PORT = 8000
MODEL = "acme/dense"
image = modal.Image.from_registry("lmsysorg/sglang:v0.5.20-cu129").env({"HF_HOME": "/cache"})
app = modal.App("serve", image=image)


@app.function(gpu="H200:2", timeout=3600)
@modal.web_server(port=PORT)
def serve():
    cmd = ["python", "-m sglang.launch_server", "--model-path", MODEL, "--tp", "2", "--port", f"{PORT}"]
    subprocess.Popen(" ".join(cmd), shell=True)


@app.cls(gpu="B200")
class Server:
    @modal.enter()
    def start(self):
        self.process = subprocess.Popen(["sglang", "serve", MODEL, "--host", "0.0.0.0", "--tp", "2", "--dp", "3", "--enable-dp-attention"])
