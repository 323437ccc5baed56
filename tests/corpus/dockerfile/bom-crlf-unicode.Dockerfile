FROM lmsysorg/sglang:v0.5.21
ENV GRüSSE="é😀"
CMD ["sglang", "serve", "acme/é😀", "--tp", \
  "2"]
