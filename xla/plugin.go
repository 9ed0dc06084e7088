package xla

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/edits"
	"github.com/lazo-ml/lazo/internal/install"
)

// Names of plugins. Others are only in the search path.
const (
	CPU  = "cpu"
	CUDA = "cuda"
	TPU  = "tpu"
	Go   = "go" // GoMLX's pure-Go backend, without a plugin; its sign of NaN is 0
)

// go-xla reads it too.
const searchPathVariable = "PJRT_PLUGIN_LIBRARY_PATH"

const (
	sourcePath    = "path"
	sourceSearch  = "$" + searchPathVariable
	sourceInstall = "lazo install"
	sourceBuiltIn = "built in"
)

// Plugin is a plugin that was found.
type Plugin struct {
	// Name is as asked for, like "cuda12"; "" for a path.
	Name string
	// Kind is the platform: [CPU], [CUDA], [TPU], [Go] or another. Before Open, a foreign library's is guessed, or "".
	Kind    string
	Path    string // absolute, "" for [Go]
	Version string
	// API is PJRT's C API version, "0.81", or "".
	API string
	// Source is where it was found: "path" (given by path), "$PJRT_PLUGIN_LIBRARY_PATH", "lazo install" (in lazo's
	// folder, digest known) or "built in" ([Go]).
	Source string

	stamp string
}

func (p Plugin) String() string {
	if p.Kind == Go {
		return "go (GoMLX's pure-Go backend, without XLA)"
	}
	text := p.Kind
	if p.Version != "" {
		text += " " + p.Version
	}
	if p.API != "" {
		text += ", PJRT API " + p.API
	}
	if text == "" {
		text = "unknown platform"
	}
	return fmt.Sprintf("%s: %s (%s)", text, p.Path, p.Source)
}

func platform(name string) string {
	name, _, _ = strings.Cut(name, "_")
	return strings.TrimRight(name, "0123456789")
}

var pluginName = regexp.MustCompile(`^[a-zA-Z0-9_]+$`)

type identity struct {
	Path                    string
	Size, Modified, Changed int64 // bytes, Unix ns; programs cannot set Changed back
	Device, Inode           uint64
	MinMinor                int
}

type notFoundError struct {
	Plugin  string
	Tried   []string
	Install string // command that installs it, or ""
}

func (e *notFoundError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "xla: %v: %q", ErrPluginNotFound, e.Plugin)
	var known []string
	if e.Install == "" && pluginName.MatchString(e.Plugin) {
		known = append(slices.DeleteFunc(install.Kinds(), func(kind string) bool { // only for compiling, and MPI
			return strings.Contains(kind, "_") || !slices.Contains([]string{CPU, CUDA, TPU}, platform(kind))
		}), Go)
		if near := edits.Nearest(e.Plugin, append(slices.Clone(known), "gpu")); near != "" {
			fmt.Fprintf(&text, "; did you mean %q?", strings.Replace(near, "gpu", CUDA, 1))
		}
	}
	for _, place := range e.Tried {
		fmt.Fprintf(&text, "\n  tried    %s", place)
	}
	if e.Install != "" {
		fmt.Fprintf(&text, "\n  install  %s", e.Install)
		fmt.Fprintf(&text, "\n  or use the plugin %q: GoMLX's pure-Go backend, slower and with fewer operations", Go)
	} else if len(known) > 0 {
		fmt.Fprintf(&text, "\n  known    %s, or the path of a library", strings.Join(known, ", "))
	}
	return text.String()
}

func (e *notFoundError) Is(target error) bool { return target == ErrPluginNotFound }
