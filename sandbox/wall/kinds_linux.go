package wall

import (
	"hone/sandbox"
	"hone/sandbox/internal/kernel"
)

// Kinds returns the walls of this system, the strongest first, even if some cannot
// be built here. Nil means that it has none.
func Kinds() []sandbox.Wall {
	return []sandbox.Wall{sandbox.Hidden, sandbox.Bubblewrap, sandbox.Landlock, sandbox.Firejail}
}

func kindOf(wall sandbox.Wall) (k kind, ok bool) {
	k, ok = map[sandbox.Wall]kind{
		sandbox.Hidden:     hiddenKind(),
		sandbox.Bubblewrap: bwrapKind(),
		sandbox.Firejail:   firejailKind(),
		sandbox.Landlock: {
			level: sandbox.LevelGuarded,
			restrain: func(s spec) kernel.Restraint {
				r := guardFiles(s, s.Policy.Tmp)
				r.Ports = s.ports()
				return r
			},
			advice: func(spec) (string, string) { return "", kernel.LandlockAdvice },
		},
		sandbox.NoWall: {
			level: sandbox.LevelOpen,
			restrain: func(s spec) kernel.Restraint {
				r := s.limits()
				r.Free = true
				return r
			},
		},
	}[wall]
	return k, ok
}
