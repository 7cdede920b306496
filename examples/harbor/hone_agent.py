"""hone as an installed agent of Harbor, the runner of Terminal-Bench.

    harbor run -d terminal-bench@2.0 --agent hone_agent:Hone -m openai/gpt-5.4 --ak binary=./hone

README.md, beside this file, says how to build that binary, and what a board then measures.
"""

import json
import shlex
from pathlib import Path

from harbor.agents.installed.base import BaseInstalledAgent, with_prompt_template

# In a container: hone; what Harbor brings back; what hone keeps, outside of the task's directory, which a task may look at.
INSTALLED = "/usr/local/bin/hone"
LOGS = "/logs/agent"
STATE = "/tmp/hone"

# What a task of a terminal may need. Others are added with --ak allow=PROGRAM,PROGRAM.
PROGRAMS = (
    "sh bash python3 python pip pip3 uv apt-get dpkg apk git make cmake gcc g++ cc go cargo rustc node npm npx java javac "
    "perl ruby curl wget tar gzip zip unzip 7z sqlite3 psql openssl ssh-keygen chmod chown ln ps kill service systemctl nginx docker"
).split()

KEYS = (
    "GEMINI_API_KEY GOOGLE_API_KEY GOOGLE_GEMINI_BASE_URL OPENAI_API_KEY OPENAI_BASE_URL ANTHROPIC_API_KEY ANTHROPIC_BASE_URL"
).split()

# How a run may end without a fault: done, not done, the budget is used up, a question is left.
ENDS = (0, 1, 3, 4)


class Hone(BaseInstalledAgent):
    """Runs `hone task` once in the container of a task, with its instruction as the task's text.

    binary is a hone for Linux on this machine; flags are more flags of hone task, in one text as for a shell; check
    is a command that decides, for task sets that tell the agent one; allow are more programs, with commas between.
    """

    def __init__(self, *args, binary="hone", flags="", check="", allow="", **kwargs):
        super().__init__(*args, **kwargs)
        self.binary = Path(binary)
        self.flags = shlex.split(str(flags))
        if check:
            self.flags += ["--check", check]
        self.allow = [*PROGRAMS, *filter(None, str(allow).split(","))]

    @staticmethod
    def name():
        return "hone"

    def get_version_command(self):
        return f"{INSTALLED} version"

    def parse_version(self, stdout):
        return stdout.removeprefix("hone ").split("\n")[0].strip()

    async def install(self, environment):
        if not self.binary.is_file():
            raise ValueError(f"{self.binary} is not a file: build hone for the containers, and name it with --ak binary=FILE")
        await environment.upload_file(self.binary, INSTALLED)
        await self.exec_as_root(environment, command=f"chmod 755 {INSTALLED}")

    @with_prompt_template
    async def run(self, instruction, environment, context):
        environ = {key: value for key in KEYS if (value := self._get_env(key))}
        environ["XDG_STATE_HOME"] = environ["XDG_CACHE_HOME"] = STATE
        model = ["--model", self.model_name] if self.model_name else []
        # The container is the wall.
        line = [INSTALLED, "task", "--sandbox", "none", "--approve", "all", "--allow", ",".join(self.allow), *model,
                f"--log={LOGS}/hone.jsonl", *self.flags, "--", instruction]
        ends = "|".join(str(status) for status in ENDS)
        await self.exec_as_agent(environment, env=environ, command=(
            f"mkdir -p {LOGS}; {shlex.join(line)} </dev/null >{LOGS}/hone.txt 2>&1; status=$?; "
            f"{INSTALLED} export last -o {LOGS}/run.hone --force >/dev/null 2>&1; rm -rf .hone .codescribe; "
            f"case $status in {ends}) ;; *) tail -n 20 {LOGS}/hone.txt; exit $status ;; esac"))

    def populate_context_post_run(self, context):
        used, end = None, None
        try:
            for line in (Path(self.logs_dir) / "hone.jsonl").read_text().splitlines():
                event = json.loads(line)
                used = event if event["type"] == "usage" else used
                end = event if event["type"] == "end" else end
        except (OSError, ValueError) as why:  # the run was cut off
            self.logger.warning("hone's log: %s", why)
        if used:
            known = used["known"]
            context.n_cache_tokens = known["cache_read"]
            context.n_input_tokens = known["input"] + known["cache_read"] + known["cache_write"]
            context.n_output_tokens = known["output"]
            context.cost_usd = used.get("cost")
        if end:
            context.metadata = {"result": end["result"], "rounds": end["rounds"], "exit": end["exit"]}
