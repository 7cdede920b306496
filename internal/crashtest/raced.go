package crashtest

import (
	"runtime/debug"
	"slices"
)

// share is how many points are tried of so many: few under the race detector,
// which sees nothing in a kill that it does not see in a run, and takes five
// times as long. make unit tries them without it.
func share(points int) int {
	info, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return max(1, points/5)
	}
	return points
}
