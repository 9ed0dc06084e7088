package pjrt

// #include "crash.h"
// #include "run.h"
import "C"

import (
	"fmt"
	"path/filepath"
	"sync"
	"unsafe"
)

// Plugin is a loaded library, one per file. It has no Close.
type Plugin struct {
	path    string
	version Version
	api     *C.lazo_Api
	mark    C.lazo_mark // of RunInline

	handlers handlers
}

var loaded struct {
	sync.Mutex
	plugins map[string]*Plugin
}

// Load loads and initializes the plugin at path, once per file. Its errors are those of [Inspect].
func Load(path string) (*Plugin, error) {
	if err := checkFile(path); err != nil {
		return nil, err
	}
	file, err := filepath.EvalSymlinks(path)
	if err == nil {
		file, err = filepath.Abs(file)
	}
	if err != nil {
		return nil, fmt.Errorf("pjrt: %s: %w: %w", path, ErrNotLoadable, err)
	}
	loaded.Lock()
	defer loaded.Unlock()
	if p := loaded.plugins[file]; p != nil {
		return p, nil
	}
	var p *Plugin
	C.lazo_speak()
	WithoutSignals(func() { p, err = load(file) })
	if err != nil {
		return nil, err
	}
	if loaded.plugins == nil {
		loaded.plugins = map[string]*Plugin{}
	}
	loaded.plugins[file] = p
	return p, nil
}

func load(path string) (*Plugin, error) {
	table, err := open(path)
	if err != nil {
		return nil, err
	}
	version := versionOf(table)
	if err := version.Check(path); err != nil {
		return nil, err
	}
	p := &Plugin{path: path, version: version, api: (*C.lazo_Api)(unsafe.Pointer(table))}
	a := p.api
	for name, function := range map[string]C.lazo_function{ // called without a check for nil
		"Error_Destroy": a.Error_Destroy, "Error_Message": a.Error_Message, "Error_GetCode": a.Error_GetCode,
		"Client_BufferFromHostBuffer": a.Client_BufferFromHostBuffer,
		"LoadedExecutable_Execute":    a.LoadedExecutable_Execute,
		"Event_Await":                 a.Event_Await,
		"Event_Destroy":               a.Event_Destroy,
		"Buffer_Destroy":              a.Buffer_Destroy,
		"Buffer_ToHostBuffer":         a.Buffer_ToHostBuffer,
	} {
		if function == nil {
			return nil, fmt.Errorf("pjrt: %s: %w: its table lacks PJRT_%s", path, ErrNoTable, name)
		}
	}
	var args C.lazo_Plugin_Initialize_Args
	if err := invoke(p, "Plugin_Initialize", a.Plugin_Initialize, &args); err != nil {
		return nil, during(err, "%s", path)
	}
	return p, nil
}

func (p *Plugin) Path() string { return p.path }

func (p *Plugin) Version() Version { return p.version }

// Attributes are values like "xla_version", of type string, int64, []int64, float32 or bool.
func (p *Plugin) Attributes() (map[string]any, error) {
	var args C.lazo_Plugin_Attributes_Args
	if err := invoke(p, "Plugin_Attributes", p.api.Plugin_Attributes, &args); err != nil {
		return nil, err
	}
	return goValues(args.attributes, args.num_attributes)
}

func (p *Plugin) Extensions() []Extension {
	var list []Extension
	for e := (*C.lazo_Extension_Base)(p.api.head.extension_start); e != nil; e = e.next {
		list = append(list, Extension(e._type))
	}
	return list
}
