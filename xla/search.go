package xla

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/lazo-ml/lazo/internal/owners"
)

// Names of plugins. Others are only in the search path.
const (
	CPU  = "cpu"
	CUDA = "cuda"
	TPU  = "tpu"
	Go   = "go" // GoMLX's pure-Go backend, without a plugin; its sign of NaN is 0
)

// SearchPathVariable names the variable with folders, separated as in PATH, that are searched first. go-xla reads it
// too.
const SearchPathVariable = "PJRT_PLUGIN_LIBRARY_PATH"

// Source is where a plugin was found.
type Source string

const (
	FromPath    Source = "path" // given by path
	FromSearch  Source = "$" + SearchPathVariable
	FromInstall Source = "lazo install" // in lazo's folder, digest known
	BuiltIn     Source = "built in"     // [Go]
)

// Plugin is a plugin that was found.
type Plugin struct {
	// Name is the name asked for, such as "cuda12"; "" for a path.
	Name string
	// Kind is the platform: [CPU], [CUDA], [TPU], [Go] or another. Before Open, a foreign library's is guessed, or "".
	Kind string
	Path string // absolute, "" for [Go]
	// Version is the installed package's version, or "".
	Version string
	// API is PJRT's C API version, "0.81", or "".
	API    string
	Source Source

	stamp string // of installed files
}

// String describes the plugin in one line.
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

var pluginName = regexp.MustCompile(`^[a-zA-Z0-9_]+$`)

// Find finds a plugin without loading it: see [Open]. It uses only [Root]. A missing plugin is a [*NotFoundError], one
// that others may change [ErrPluginInsecure] (docs/security.md).
func Find(plugin string, opts ...Option) (Plugin, error) {
	o, err := newOptions(opts)
	if err != nil {
		return Plugin{}, err
	}
	return find(plugin, o)
}

func find(plugin string, o *options) (Plugin, error) {
	switch {
	case plugin == Go:
		return Plugin{Name: Go, Kind: Go, Source: BuiltIn}, nil
	case strings.ContainsAny(plugin, `/\`) || filepath.Ext(plugin) != "":
		return findPath(plugin)
	case !pluginName.MatchString(plugin):
		return Plugin{}, fmt.Errorf("xla: plugin %q is neither a name (%s, %s, %s, %s) nor the path of a library",
			plugin, CPU, CUDA, TPU, Go)
	}
	missing := &NotFoundError{Plugin: plugin}
	if path, err := searchPath(plugin, missing); err != nil || path != "" {
		return Plugin{Name: plugin, Kind: platform(plugin), Path: path, Source: FromSearch}, err
	}
	if !installable(plugin) {
		return Plugin{}, missing
	}
	missing.Install = installCommand(plugin)
	return findInstalled(plugin, o.root, missing)
}

// platform of "cuda12" and "cuda_compile" is "cuda".
func platform(name string) string {
	name, _, _ = strings.Cut(name, "_")
	return strings.TrimRight(name, "0123456789")
}

func findPath(path string) (Plugin, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return Plugin{}, fmt.Errorf("xla: plugin %q: %w", path, err)
	}
	// The plugin finds other libraries from its real folder. Whoever can change it or a link could run code.
	resolved, err := owners.Resolve(absolute)
	if errors.Is(err, os.ErrNotExist) {
		return Plugin{}, &NotFoundError{Plugin: path, Tried: []string{absolute}}
	}
	if err != nil {
		return Plugin{}, fmt.Errorf("xla: plugin %q: %w", path, err)
	}
	return Plugin{Path: resolved, Source: FromPath}, nil
}

// patterns identify plugins without running their constructors.
func patterns(name string) []string {
	stems := []string{
		"pjrt_c_api_" + name + "_*plugin*", "pjrt_plugin_" + name, "pjrt-plugin-" + name,
		"xla_" + name + "_pjrt", "xla_" + name + "_plugin",
	}
	if name == TPU {
		stems = append(stems, "libtpu")
	}
	var all []string
	for _, stem := range stems {
		all = append(all, stem+".so")
		if runtime.GOOS == "darwin" {
			all = append(all, stem+".dylib")
		}
	}
	return all
}

// searchPath returns "" for none. A match that others may change is an error.
func searchPath(name string, missing *NotFoundError) (string, error) {
	folders := filepath.SplitList(os.Getenv(SearchPathVariable))
	if len(folders) == 0 {
		missing.Tried = append(missing.Tried, "$"+SearchPathVariable+" (not set)")
	}
	for _, folder := range folders {
		if folder == "" {
			continue
		}
		missing.Tried = append(missing.Tried,
			fmt.Sprintf("%s and like names ($%s)", filepath.Join(folder, patterns(name)[0]), SearchPathVariable))
		for _, pattern := range patterns(name) {
			matches, err := filepath.Glob(filepath.Join(folder, pattern))
			if err != nil || len(matches) == 0 {
				continue
			}
			found, err := findPath(matches[0])
			if err == nil || !errors.Is(err, ErrPluginNotFound) { // a link may lead nowhere
				return found.Path, err
			}
		}
	}
	return "", nil
}
