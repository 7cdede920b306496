"""Runs the adapter with a real hone, in a directory in place of a container.

Where Harbor is installed, the adapter is loaded by Harbor's own factory; elsewhere a few lines stand for the class that
it extends. Usage: HONE=/path/of/hone python3 test_hone_agent.py
"""

import asyncio
import importlib.util
import logging
import os
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
HAS_HARBOR = importlib.util.find_spec("harbor") is not None

if not HAS_HARBOR:

    class Base:
        def __init__(self, logs_dir, model_name=None, **rest):
            assert not rest, rest
            self.logs_dir, self.model_name, self.logger = logs_dir, model_name, logging.getLogger("test")

        def _get_env(self, key):
            return os.environ.get(key)

        async def exec_as_agent(self, environment, command, env=None):
            result = await environment.exec(command, env=env)
            if result.return_code:
                raise RuntimeError(result.stdout)

        exec_as_root = exec_as_agent

    for name in ("harbor", "harbor.agents", "harbor.agents.installed", "harbor.agents.installed.base"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["harbor.agents.installed.base"].BaseInstalledAgent = Base
    sys.modules["harbor.agents.installed.base"].with_prompt_template = lambda run: run

import hone_agent  # noqa: E402


class Directory:
    """An environment whose commands run in a directory of this machine."""

    default_user = None

    def __init__(self, root):
        self.root = Path(root)
        hone_agent.INSTALLED = str(self.root / "bin" / "hone")
        hone_agent.LOGS = str(self.root / "logs")
        hone_agent.STATE = str(self.root / "state")
        for name in ("bin", "logs", "work"):
            (self.root / name).mkdir()

    async def upload_file(self, source, target):
        Path(target).write_bytes(Path(source).read_bytes())

    async def exec(self, command, env=None, **_):
        done = subprocess.run(["bash", "-c", command], cwd=self.root / "work", env={**os.environ, **(env or {})},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return types.SimpleNamespace(return_code=done.returncode, stdout=done.stdout, stderr="")


REPLIES = """=== reply when="Say 'hello' in .HOME's file" ===
=== call write ===
{"path": "said.txt", "content": "hello\\n"}
=== reply ===
STATUS: COMPLETE
"""


class Adapter(unittest.TestCase):
    def setUp(self):
        self.root = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.environment = Directory(self.root)
        (self.root / "replies").write_text(REPLIES)

    def agent(self, **options):
        options = {"binary": os.environ["HONE"], "model_name": f"script/{self.root}/replies", "flags": "--rounds 1", **options}
        if not HAS_HARBOR:
            return hone_agent.Hone(logs_dir=self.root / "logs", **options)
        from harbor.agents.factory import AgentFactory
        return AgentFactory.create_agent_from_import_path("hone_agent:Hone", logs_dir=self.root / "logs", **options)

    def run_once(self, agent, instruction):
        context = types.SimpleNamespace()
        try:
            asyncio.run(agent.install(self.environment))
            asyncio.run(agent.run(instruction, self.environment, context))
        finally:
            agent.populate_context_post_run(context)
        return context

    def test_task(self):
        context = self.run_once(self.agent(), "Say 'hello' in $HOME's file")
        self.assertEqual((self.root / "work/said.txt").read_text(), "hello\n")
        self.assertEqual([p.name for p in (self.root / "work").iterdir()], ["said.txt"])
        self.assertTrue((self.root / "logs/run.hone").is_file())
        self.assertGreater(context.n_input_tokens, 100)
        self.assertGreater(context.n_output_tokens, 0)
        self.assertEqual(context.cost_usd, 0)
        self.assertEqual(context.metadata, {"result": "done", "rounds": 1, "exit": 0})

    def test_not_done_is_no_fault(self):
        context = self.run_once(self.agent(check="false"), "Say 'hello' in $HOME's file")
        self.assertEqual(context.metadata["exit"], 1)

    def test_fault(self):
        with self.assertRaisesRegex(RuntimeError, "nobody"):
            self.run_once(self.agent(model_name="nobody/x"), "Say 'hello' in $HOME's file")

    def test_no_binary(self):
        with self.assertRaisesRegex(ValueError, "is not a file: build hone"):
            self.run_once(self.agent(binary="/nowhere/hone"), "anything")

    def test_version(self):
        self.assertEqual(self.agent().parse_version("hone 1.2.3\nmore\n"), "1.2.3")


if __name__ == "__main__":
    unittest.main()
