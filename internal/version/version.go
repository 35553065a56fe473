// Package version knows the version of the program.
package version

import (
	"regexp"
	"runtime/debug"
)

// linked is set by the linker (-X .../internal/version.linked=...) in released builds.
var linked string

// released matches the versions that "go install module@version" stamps. What the go
// command derives from a checkout is no release.
var released = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+$`)

// String returns the version of the program, "devel" where it is unknown.
func String() string {
	if linked != "" {
		return linked
	}
	if info, ok := debug.ReadBuildInfo(); ok && released.MatchString(info.Main.Version) {
		return info.Main.Version
	}
	return "devel"
}
