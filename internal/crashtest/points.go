package crashtest

import (
	"runtime/debug"
	"slices"
)

// scaledPoints returns how many points to try instead of points: fewer under
// the race detector, which takes five times as long and finds no more in a kill
// than in a run. make unit tries all without it.
func scaledPoints(points int) int {
	if raceEnabled() {
		return max(1, points/5)
	}
	return points
}

func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
