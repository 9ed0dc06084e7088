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

// Names of plugins. Other names are looked for in the search path only.
const (
	CPU  = "cpu"
	CUDA = "cuda"
	TPU  = "tpu"
	Go   = "go" // GoMLX's pure-Go backend: no plugin at all
)

// SearchPathVariable names the environment variable with the folders, separated
// as in PATH, that are searched for a plugin before lazo's own. go-xla reads the
// same one.
const SearchPathVariable = "PJRT_PLUGIN_LIBRARY_PATH"

// Source says how a plugin was found.
type Source string

// Where plugins come from.
const (
	FromPath    Source = "path"                   // given by its path
	FromSearch  Source = "$" + SearchPathVariable // in a folder of the search path
	FromInstall Source = "lazo install"           // in lazo's own folder, digest known
	BuiltIn     Source = "built in"               // [Go]
)

// Plugin is a plugin that was found.
type Plugin struct {
	// Name is what it is asked for by, such as "cuda12" or "cpu106"; "" if by its path.
	Name string
	// Kind is the platform: [CPU], [CUDA], [TPU], [Go] or another. A library
	// that lazo did not install says which it is when it is opened; until then
	// Kind is a guess from its name, "" if it has none.
	Kind string
	Path string // absolute, "" for [Go]
	// Version is the version of the package that lazo installed, "" otherwise.
	Version string
	// API is the version of PJRT's C API, "0.81", "" as long as it is not known.
	API    string
	Source Source

	stamp string // of all files of what lazo installed
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

// Find looks for a plugin and loads nothing: see [Open] for the places and their
// order. Only the option [Root] matters here. A plugin that is nowhere gives a
// [*NotFoundError]; one that others may have written or may replace matches
// [ErrPluginInsecure] (docs/security.md).
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

// platform takes off a name what it says beside the platform: "cuda12" and "cuda_compile" are "cuda", "cpu106" is
// "cpu".
func platform(name string) string {
	name, _, _ = strings.Cut(name, "_")
	return strings.TrimRight(name, "0123456789")
}

func findPath(path string) (Plugin, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return Plugin{}, fmt.Errorf("xla: plugin %q: %w", path, err)
	}
	// Resolved, because libraries beside it are found from its real place. To load it would run the code of any user
	// who can change or replace it, or a link on the way.
	resolved, err := owners.Resolve(absolute)
	if errors.Is(err, os.ErrNotExist) {
		return Plugin{}, &NotFoundError{Plugin: path, Tried: []string{absolute}}
	}
	if err != nil {
		return Plugin{}, fmt.Errorf("xla: plugin %q: %w", path, err)
	}
	return Plugin{Path: resolved, Source: FromPath}, nil
}

// patterns are the file names under which plugins are shipped. None is loaded to
// find out what it is: that would run its constructors.
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

// searchPath gives the first match in the search path's folders, "" if none. A match that is not the user's own is an
// error.
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
