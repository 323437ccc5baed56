# escape=`
FROM lmsysorg/sglang:v0.5.18
CMD ["sh", "-c", "exec sglang serve acme/dense --tp $TP `
  --port 8000"]
