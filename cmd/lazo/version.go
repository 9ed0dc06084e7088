package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

type versionCommand struct{}

func (versionCommand) Run(s session) error {
	printVersions(s.stdout)
	return nil
}

// goNeeded is go.mod's Go.
const goNeeded = "1.26.5"

func printVersions(w io.Writer) {
	line(w, "lazo", "%s", moduleVersion("github.com/lazo-ml/lazo"))
	line(w, "go", "built with %s %s/%s; needs go%s or newer", runtime.Version(), runtime.GOOS, runtime.GOARCH, goNeeded)
	line(w, "GoMLX", "%s", moduleVersion("github.com/gomlx/gomlx"))
	line(w, "compute", "%s", moduleVersion("github.com/gomlx/compute"))
	line(w, "go-xla", "%s", moduleVersion("github.com/gomlx/go-xla"))
	line(w, "PJRT API", "%d.%d or a newer %d.x", pjrt.Major, pjrt.MinMinor, pjrt.Major)
}

func line(w io.Writer, name, format string, args ...any) {
	fmt.Fprintf(w, "%-9s %s\n", name, escaped(fmt.Sprintf(format, args...), "\t"))
}

func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, module := range append(info.Deps, &info.Main) {
		if module.Path == path && module.Replace == nil && module.Version != "" {
			return module.Version
		}
	}
	return "(devel)"
}
