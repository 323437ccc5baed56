import unittest

from sglang.srt.server_args import ServerArgs
from sglang.test.test_utils import (
    DEFAULT_MODEL_NAME_FOR_TEST,
    DEFAULT_URL_FOR_TEST,
    CustomTestCase,
    popen_launch_pd_server,
    popen_launch_server,
    run_bench_serving,
)


class TestBase(CustomTestCase):
    model = None
    attention_backend = "triton"
    extra = []

    @classmethod
    def setUpClass(cls):
        cls.base_url = DEFAULT_URL_FOR_TEST
        other_args = ["--attention-backend", cls.attention_backend, "--mem-fraction-static", 0.7]
        other_args.extend(cls.extra)
        cls.process = popen_launch_server(
            cls.model, cls.base_url, timeout=600, other_args=other_args, env={"SGLANG_CI_SMALL_KV_SIZE": "4500"}
        )


class TestEagle(TestBase):
    model = "acme/chat-8b"
    attention_backend = "fa3"
    extra = ["--speculative-algorithm", "EAGLE", "--speculative-draft-model-path", "acme/eagle"]

    def test_refused(self):
        with self.assertRaises(ValueError):
            ServerArgs(model_path="dummy", tp_size=3, speculative_algorithm="EAGLE")


class TestOther(CustomTestCase):
    def test_bench(self):
        run_bench_serving(
            model=DEFAULT_MODEL_NAME_FOR_TEST,
            num_prompts=10,
            request_rate=1,
            other_server_args=["--chunked-prefill-size", "-1"],
        )

    def test_pd(self):
        popen_launch_pd_server(
            DEFAULT_MODEL_NAME_FOR_TEST,
            DEFAULT_URL_FOR_TEST,
            timeout=600,
            other_args=["--disaggregation-mode", "prefill", "--tp", "1"],
        )


if __name__ == "__main__":
    unittest.main()
