package pjrt

// #include "inline.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// RunInline makes later Calls on one device run programs that they wait for on the caller's thread, side by side. It is
// [ErrUnimplemented] for builds whose code is not known.
func (p *Plugin) RunInline() error {
	p.mark = C.lazo_find_mark(unsafe.Pointer(p.api.LoadedExecutable_Execute))
	if p.mark.index == nil {
		return fmt.Errorf("pjrt: %s: run programs on the caller's thread: %w", p.path, ErrUnimplemented)
	}
	return nil
}
