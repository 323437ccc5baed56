# `make jax` starts another server than sglang.launch_server.
jax:
	python -m sgl_jax.launch_server --model-path acme/dense --tp-size 4
router:
	python -m sglang_router.launch_router --policy round_robin
