//go:build unix

package workshop

import (
	"os"
	"strings"
	"testing"

	"hone/sandbox"
)

// toolCase is a home with a toolchain, and what commands reach of it. In all fields %
// stands for the directory that contains everything.
type toolCase struct {
	files, env         []string
	path               string // % stands for the common directory
	read, none, hidden []string
	vars               []string
	net                bool
}

// nodeTools returns JavaScript's toolchains.
func nodeTools() map[string]toolCase {
	return map[string]toolCase{
		"nvm": {
			files: []string{"person/.nvm/versions/node/v20/bin/node*", "person/.nvm/versions/node/v20/lib/x.js", "person/.nvm/versions/node/v20/etc/npmrc", "person/.nvm/versions/node/v18/bin/node*", "person/.npmrc"},
			path:  "%/person/.nvm/versions/node/v20/bin",
			read:  []string{"person/.nvm/versions/node/v20/bin/node", "person/.nvm/versions/node/v20/lib/x.js"},
			none:  []string{"person/.nvm/versions/node/v20/etc/npmrc", "person/.nvm/versions/node/v18/bin/node", "person/.npmrc"},
		},
		"fnm": {
			files: []string{"person/.local/share/fnm/node-versions/v20/installation/bin/node*", "person/.local/share/fnm/node-versions/v20/installation/lib/x.js", "person/.local/state/fnm_multishells/1_2 -> %/person/.local/share/fnm/node-versions/v20/installation", "person/.local/state/secret"},
			path:  "%/person/.local/state/fnm_multishells/1_2/bin",
			read:  []string{"person/.local/state/fnm_multishells/1_2/bin/node", "person/.local/share/fnm/node-versions/v20/installation/lib/x.js"},
			none:  []string{"person/.local/state/secret"},
		},
		"volta": {files: []string{"person/.volta/bin/node*", "person/.volta/tools/x"}, path: "%/person/.volta/bin", read: []string{"person/.volta/tools/x"}, vars: []string{"VOLTA_HOME=%/person/.volta"}},
		"npm's own prefix": {
			files: []string{"person/.npm-global/bin/x -> ../lib/node_modules/x/cli.js", "person/.npm-global/lib/node_modules/x/cli.js*", "person/.npm-global/etc/npmrc"},
			path:  "%/person/.npm-global/bin",
			read:  []string{"person/.npm-global/lib/node_modules/x/cli.js"},
			none:  []string{"person/.npm-global/etc/npmrc"},
		},
		"npm's prefix in ~/.local": {
			files: []string{"person/.local/bin/x -> ../lib/node_modules/x/bin/cli.js", "person/.local/lib/node_modules/x/bin/cli.js*", "person/.local/lib/node_modules/y/i.js", "person/.local/lib/z"},
			path:  "%/person/.local/bin",
			read:  []string{"person/.local/lib/node_modules/x/bin/cli.js", "person/.local/lib/node_modules/y/i.js"},
			none:  []string{"person/.local/lib/z"},
		},
		"npm's packages": {files: []string{"person/.npm/_cacache/x", "person/.npm/_logs/x"}, path: "/usr/bin", read: []string{"person/.npm/_cacache/x"}, none: []string{"person/.npm/_logs/x"}},
		"browsers":       {files: []string{"person/.cache/ms-playwright/x", "person/.cache/other"}, path: "/usr/bin", read: []string{"person/.cache/ms-playwright/x"}, none: []string{"person/.cache/other"}, vars: []string{"PLAYWRIGHT_BROWSERS_PATH=%/person/.cache/ms-playwright"}},
	}
}

// pythonTools returns Python's toolchains, and programs next to them.
func pythonTools() map[string]toolCase {
	return map[string]toolCase{
		"pyenv": {
			files: []string{"person/.pyenv/shims/python*", "person/.pyenv/versions/3.12/bin/python*", "person/.pyenv/version", "person/.pypirc"},
			path:  "%/person/.pyenv/shims",
			read:  []string{"person/.pyenv/shims/python", "person/.pyenv/versions/3.12/bin/python", "person/.pyenv/version"},
			none:  []string{"person/.pypirc"},
			vars:  []string{"PYENV_ROOT=%/person/.pyenv"},
		},
		"pipx over uv's Python": {
			files: []string{
				"person/.local/bin/tool -> ../share/pipx/venvs/tool/bin/tool", "person/.local/share/pipx/venvs/tool/bin/tool*", "person/.local/share/pipx/venvs/tool/pyvenv.cfg", "person/.local/share/pipx/venvs/tool/lib/m.py", "person/.local/share/pipx/venvs/tool/pip.conf",
				"person/.local/share/pipx/venvs/tool/bin/python -> %/person/.local/share/uv/python/cpython-3.12/bin/python3", "person/.local/share/uv/python/cpython-3.12 -> cpython-3.12.4", "person/.local/share/uv/python/cpython-3.12.4/bin/python3*",
				"person/.local/share/pipx/venvs/other/lib/m.py", "person/.local/share/keyrings/login",
			},
			path:   "%/person/.local/bin",
			read:   []string{"person/.local/bin/tool", "person/.local/share/pipx/venvs/tool/lib/m.py", "person/.local/share/uv/python/cpython-3.12/bin/python3"},
			hidden: []string{"person/.local/share/pipx/venvs/tool/pip.conf"},
			none:   []string{"person/.local/share/pipx/venvs/other/lib/m.py", "person/.local/share/keyrings/login", "person/.local/share"},
		},
		"links of ~/.local/bin": {
			files: []string{"person/.local/bin/a -> %/person/work/scripts/a.sh", "person/.local/bin/key -> %/person/.ssh/id_rsa", "person/.local/bin/loop -> loop", "person/.local/bin/gone -> /nowhere/x", "person/.local/bin/dir -> %/person/work", "person/.local/bin/in -> %/src/project/tool",
				"person/work/scripts/a.sh*", "person/work/scripts/b.sh*", "person/.ssh/id_rsa*", "src/project/tool*"},
			path: "%/person/.local/bin",
			read: []string{"person/.local/bin/a", "person/work/scripts/a.sh"},
			none: []string{"person/work/scripts/b.sh", "person/.ssh/id_rsa", "person/work/new"},
		},
		"packages of the user's Python": {
			files: []string{"person/.local/lib/python3.12/site-packages/m.py", "person/.local/lib/other"},
			path:  "/usr/bin",
			read:  []string{"person/.local/lib/python3.12/site-packages/m.py"},
			none:  []string{"person/.local/lib/other"},
			vars:  []string{"PYTHONUSERBASE=%/person/.local"},
		},
		"conda": {
			files:  []string{"person/miniconda3/envs/x/bin/python*", "person/miniconda3/envs/x/conda-meta/x", "person/miniconda3/.condarc", "person/miniconda3/condabin/conda*", "person/miniconda3/conda-meta/x", "person/.condarc"},
			env:    []string{"CONDA_PREFIX=%/person/miniconda3/envs/x"},
			path:   "%/person/miniconda3/envs/x/bin:%/person/miniconda3/condabin",
			read:   []string{"person/miniconda3/envs/x/conda-meta/x", "person/miniconda3/conda-meta/x"},
			hidden: []string{"person/miniconda3/.condarc"},
			none:   []string{"person/.condarc"},
			vars:   []string{"CONDA_PREFIX=%/person/miniconda3/envs/x"},
		},
	}
}

// compiledTools returns the toolchains of Rust, Go, Java and .NET.
func compiledTools() map[string]toolCase {
	return map[string]toolCase{
		"rustup": {
			files: []string{"person/.cargo/bin/rustup*", "person/.cargo/bin/cargo -> rustup", "person/.cargo/credentials.toml", "person/.cargo/config.toml", "person/.cargo/registry/cache/x", "person/.cargo/git/db/x", "person/.rustup/toolchains/stable/bin/rustc*", "person/.rustup/settings.toml", "person/.rustup/downloads/x"},
			path:  "%/person/.cargo/bin",
			read:  []string{"person/.cargo/bin/cargo", "person/.rustup/toolchains/stable/bin/rustc", "person/.rustup/settings.toml", "person/.cargo/registry/cache/x", "person/.cargo/git/db/x"},
			none:  []string{"person/.cargo/credentials.toml", "person/.cargo/config.toml", "person/.rustup/downloads/x"},
			vars:  []string{"RUSTUP_HOME=%/person/.rustup", "CARGO_HOME=%/cache/run/home/.cargo"},
		},
		"rustup elsewhere": {
			files: []string{"tools/cargo/bin/cargo*", "tools/cargo/credentials", "tools/cargo/lib/x", "tools/rustup/toolchains/stable/bin/rustc*"},
			env:   []string{"CARGO_HOME=%/tools/cargo", "RUSTUP_HOME=%/tools/rustup"},
			path:  "%/tools/cargo/bin",
			read:  []string{"tools/cargo/bin/cargo", "tools/rustup/toolchains/stable/bin/rustc"},
			none:  []string{"tools/cargo/credentials", "tools/cargo/lib/x"},
			vars:  []string{"RUSTUP_HOME=%/tools/rustup"},
		},
		"crates with the network": {
			files: []string{"person/.cargo/bin/cargo*", "person/.cargo/registry/cache/x"},
			path:  "%/person/.cargo/bin", net: true,
			none: []string{"person/.cargo/registry/cache/x"},
		},
		"sdkman": {
			files: []string{"person/.sdkman/candidates/java/17/bin/java*", "person/.sdkman/candidates/java/17/lib/x", "person/.sdkman/candidates/java/current -> 17", "person/.sdkman/etc/config"},
			env:   []string{"JAVA_HOME=%/person/.sdkman/candidates/java/current"},
			path:  "%/person/.sdkman/candidates/java/current/bin",
			read:  []string{"person/.sdkman/candidates/java/current/lib/x"},
			none:  []string{"person/.sdkman/etc/config"},
			vars:  []string{"JAVA_HOME=%/person/.sdkman/candidates/java/current"},
		},
		"Go": {
			files: []string{"person/sdk/go1.26/bin/go*", "person/sdk/go1.26/pkg/x", "person/go/bin/tool*", "person/go/pkg/mod/x", "person/go/src/private/x", "person/.config/go/env"},
			env:   []string{"GOROOT=%/person/sdk/go1.26"},
			path:  "%/person/sdk/go1.26/bin:%/person/go/bin",
			read:  []string{"person/sdk/go1.26/pkg/x", "person/go/bin/tool", "person/go/pkg/mod/x"},
			none:  []string{"person/go/src/private/x", "person/.config/go/env"},
			vars:  []string{"GOROOT=%/person/sdk/go1.26", "GOMODCACHE=%/person/go/pkg/mod", "GOPATH=%/cache/run/home/go", "GOPROXY=off"},
		},
		"Go with the network": {
			files: []string{"person/go/pkg/mod/cache/download/x"}, path: "/usr/bin", net: true,
			env:  []string{"GOPROXY=https://me:pw@private.example,https://proxy.example"},
			read: []string{"person/go/pkg/mod/cache/download/x"},
			vars: []string{"GOMODCACHE=%/cache/run/home/go/pkg/mod", "GOPROXY=file://%/person/go/pkg/mod/cache/download,https://proxy.example"},
		},
		"Maven":  {files: []string{"person/.m2/repository/x", "person/.m2/settings.xml"}, path: "/usr/bin", read: []string{"person/.m2/repository/x"}, none: []string{"person/.m2/settings.xml"}},
		"Gradle": {files: []string{"person/.gradle/caches/modules-2/x", "person/.gradle/gradle.properties"}, path: "/usr/bin", read: []string{"person/.gradle/caches/modules-2/x"}, none: []string{"person/.gradle/gradle.properties"}, vars: []string{"GRADLE_RO_DEP_CACHE=%/person/.gradle/caches"}},
		".NET":   {files: []string{"person/.nuget/packages/x", "person/.nuget/NuGet/NuGet.Config", "person/.dotnet/dotnet*"}, path: "%/person/.dotnet", read: []string{"person/.nuget/packages/x", "person/.dotnet/dotnet"}, none: []string{"person/.nuget/NuGet/NuGet.Config"}, vars: []string{"NUGET_FALLBACK_PACKAGES=%/person/.nuget/packages"}},
	}
}

// otherTools returns managers of many languages, and directories of no toolchain.
func otherTools() map[string]toolCase {
	return map[string]toolCase{
		"asdf": {files: []string{"person/.asdf/shims/node*", "person/.asdf/installs/x"}, path: "%/person/.asdf/shims", read: []string{"person/.asdf/installs/x"}, vars: []string{"ASDF_DATA_DIR=%/person/.asdf"}},
		"mise": {files: []string{"person/.local/share/mise/installs/node/20/bin/node*", "person/.local/share/other"}, path: "%/person/.local/share/mise/installs/node/20/bin", read: []string{"person/.local/share/mise/installs/node/20/bin/node"}, none: []string{"person/.local/share/other"}, vars: []string{"MISE_DATA_DIR=%/person/.local/share/mise"}},
		"a manager that PATH does not name": {
			files: []string{"person/.rbenv/shims/ruby*"}, path: "/usr/bin", none: []string{"person/.rbenv/shims/ruby"},
		},
		"a project with programs": {
			files: []string{"person/code/tool/bin/x*", "person/code/tool/lib/x", "person/code/tool/.git/HEAD", "person/code/tool/.env"},
			path:  "%/person/code/tool/bin",
			read:  []string{"person/code/tool/bin/x"},
			none:  []string{"person/code/tool/lib/x", "person/code/tool/.env", "person/code"},
		},
		"a prefix outside of the home": {
			files: []string{"opt/tool/bin/x*", "opt/tool/lib/l", "opt/tool/share/s", "opt/other/lib/l"},
			path:  "%/opt/tool/bin",
			read:  []string{"opt/tool/bin/x", "opt/tool/lib/l", "opt/tool/share/s"},
			none:  []string{"opt/other/lib/l", "opt/other"},
		},
		"a folder that has a bin among others": {
			files: []string{"person/other/bin/x*", "person/other/bin/y -> ../tools/y", "person/other/tools/y*", "person/other/lib/l", "person/other/letters/l", "person/other/key", "person/.local/bin/z -> %/person/mine/bin/z", "person/mine/bin/z*", "person/mine/lib/l", "person/mine/notes"},
			path:  "%/person/other/bin:%/person/.local/bin",
			read:  []string{"person/other/bin/x", "person/other/tools/y", "person/other/lib/l", "person/mine/bin/z", "person/mine/lib/l"},
			none:  []string{"person/other/letters/l", "person/other/key", "person/mine/notes"},
		},
		"a Go that only PATH names": {files: []string{"opt/go/bin/go*", "opt/go/go.env", "opt/go/src/fmt/print.go"}, path: "%/opt/go/bin", read: []string{"opt/go/src/fmt/print.go"}},
		"~/bin":                     {files: []string{"person/bin/x*", "person/lib/x"}, path: "%/person/bin", read: []string{"person/bin/x"}, none: []string{"person/lib/x"}},
		"Docker Desktop":            {files: []string{"person/.docker/bin/docker*", "person/.docker/config.json"}, path: "%/person/.docker/bin", read: []string{"person/.docker/bin/docker"}, none: []string{"person/.docker/config.json"}},
		"a variable that names the home": {
			files: []string{"person/x"}, env: []string{"JAVA_HOME=%/person", "GEM_HOME=%", "PYENV_ROOT=/", "GOMODCACHE=%/person", "NUGET_PACKAGES=%/src"}, path: "/usr/bin",
			none: []string{"person/x", "src/x"}, vars: []string{"JAVA_HOME=", "GEM_HOME=", "PYENV_ROOT=", "GOMODCACHE="},
		},
	}
}

func TestToolchains(t *testing.T) {
	for _, cases := range []map[string]toolCase{nodeTools(), pythonTools(), compiledTools(), otherTools()} {
		for name, c := range cases {
			t.Run(name, c.test)
		}
	}
}

func (c toolCase) test(t *testing.T) {
	b := newBench(t, c.files...)
	path := strings.ReplaceAll(c.path, "%", b.base)
	b.env("PATH=" + path)
	b.env(c.env...)
	b.shop.Net = c.net
	p, env := b.policy(t)
	b.check(t, p, "read", c.read...)
	b.check(t, p, "none", c.none...)
	b.check(t, p, "hidden", c.hidden...)
	b.check(t, p, "none", "person", "src/other")
	b.check(t, p, "write", "src/project/x")
	if got := sandbox.EnvValue(env, "PATH"); got != path {
		t.Errorf("PATH=%s, want %s", got, path)
	}
	for _, kv := range c.vars {
		kv = strings.ReplaceAll(kv, "%", b.base)
		if got := sandbox.EnvValue(env, sandbox.EnvName(kv)); got != sandbox.EnvValue([]string{kv}, sandbox.EnvName(kv)) {
			t.Errorf("%s=%s, want %s", sandbox.EnvName(kv), got, kv)
		}
	}
}

// TestHostilePath checks that an entry of PATH shows a directory of programs or
// nothing.
func TestHostilePath(t *testing.T) {
	b := newBench(t, "person/.ssh/id_rsa*", "person/.ssh/bin/x*", "person/.ssh/lib/x", "person/secret", "file*", "tools/new\nline/x*", "tools/\xff/x*", "tools/ok/x*",
		"src/project/bin/x*", "src/project/evil -> %/person/.ssh", "src/project/bin/python -> %/person/.ssh/id_rsa", "into -> %/src/project/bin", "home -> %/person", "src/lib/x", "src/bin/x*", "top -> /")
	for entry, stays := range map[string]bool{
		"":                          false,
		".":                         false,
		"relative":                  false,
		"/":                         false,
		"/etc":                      false,
		"/proc":                     false,
		"/proc/self/cwd":            false,
		"/dev":                      false,
		"/tmp":                      false,
		"/usr/bin/":                 true,
		"/usr/bin/../bin":           true,
		b.home:                      false,
		b.home + "/.ssh":            false,
		b.home + "/../person":       false,
		b.base:                      false,
		b.base + "/home":            false,
		b.base + "/top":             false,
		b.base + "/top/proc":        false,
		b.base + "/file":            false,
		b.base + "/nowhere":         false,
		b.base + "/src":             false,
		b.run:                       false,
		b.base + "/cache":           false,
		b.base + "/into":            false,
		b.root + "/bin":             true,
		b.root + "/evil":            true,
		b.base + "/tools/\xff":      false,
		b.base + "/tools/new\nline": true,
		b.base + "/tools/ok":        true,
		b.base + "/src/bin":         true,
		"/mnt/c/Windows":            false,
	} {
		b.shop.Environ = []string{"HOME=" + b.home, "PATH=" + entry + ":/usr/bin"}
		p, env := b.policy(t)
		b.check(t, p, "none", "person/secret", "person/.ssh/id_rsa", "person/.ssh/lib/x", "src/other", "src/lib/x", "cache/x", "/root/x", "/etc/shadow", "/proc/1")
		b.check(t, p, "write", "src/project/bin/x")
		if got := sandbox.EnvValue(env, "PATH") != "/usr/bin" || strings.HasPrefix(entry, "/usr/bin"); got != stays {
			t.Errorf("PATH entry %q: PATH=%q", entry, sandbox.EnvValue(env, "PATH"))
		}
	}
}

// TestWorkspaceInAToolchain checks that the workspace is writable wherever it is.
func TestWorkspaceInAToolchain(t *testing.T) {
	b := newBench(t, "person/.pyenv/shims/python*", "person/.pyenv/plugins/mine/.git/config", "person/go/pkg/mod/x")
	b.shop.Root = b.home + "/.pyenv/plugins/mine"
	b.env("PATH=" + b.home + "/.pyenv/shims")
	p, _ := b.policy(t)
	b.check(t, p, "write", "person/.pyenv/plugins/mine/x")
	b.check(t, p, "read", "person/.pyenv/plugins/mine/.git/config", "person/go/pkg/mod/x")
	b.check(t, p, "none", "person/.pyenv/plugins", "person/x")

	b.shop.Root = b.home + "/.pyenv"
	p, _ = b.policy(t)
	b.check(t, p, "write", "person/.pyenv/shims/python", "person/.pyenv/x")

	b.shop.Root = b.home
	b.make(t, "person/.ssh/id_rsa")
	p, _ = b.policy(t)
	b.check(t, p, "write", "person/x")
	b.check(t, p, "hidden", "person/.ssh/id_rsa")
}

func TestSystem(t *testing.T) {
	p := sandbox.Policy{Read: System()}
	b := &bench{base: "/"}
	b.check(t, p, "none", "/etc/shadow", "/etc/ssl/private/x", "/etc/ssh", "/etc/sudoers", "/opt/x", "/root/x", "/home/x", "/var/lib/x", "/etc/x")
	for _, path := range p.Read {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	b.check(t, p, "read", "/bin/sh", "/usr/bin/env")
}

// No PATH shows the home or a directory around it, or makes the workspace read-only.
func TestHostilePaths(t *testing.T) {
	for _, path := range []string{"", ":", "/", "%/person", "%/person/bin:..", "%/src/project/bin", "%/person/.local/bin:\n:\xff", "%/person/../person/",
		"%/person/bin/../..", "//", "/.:/..", "%/person/bin/", ".", "~", "%/src:%", "%/person/bin\x00/", strings.Repeat("%/person/bin:", 1000)} {
		b := newBench(t, "person/bin/x*", "person/lib/x", "person/.local/bin/x*", "person/secret", "src/project/bin/x*")
		b.shop.Environ = []string{"HOME=" + b.home, strings.ReplaceAll("PATH="+path, "%", b.base)}
		p, _ := b.policy(t)
		b.check(t, p, "none", "person/secret", "person", "src/other")
		b.check(t, p, "write", "src/project/bin/x")
	}
}
