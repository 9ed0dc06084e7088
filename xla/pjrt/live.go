package pjrt

import "sync/atomic"

// Counts says how many things of this package exist in the process. After Close of what a program made, each is what
// it was before.
type Counts struct {
	Clients, Buffers, Executables, Events, Views int64
	Calls                                        int64 // prepared calls, and executions in flight
	Callbacks                                    int64 // Go functions that a plugin is still to call
	Allocations                                  int64 // blocks of C memory held by this package
	// Collected counts what the garbage collector had to close. It never falls.
	Collected int64
}

var live struct {
	clients, buffers, executables, events, views, calls, callbacks, allocations, collected atomic.Int64
}

// Live counts what exists now.
func Live() Counts {
	return Counts{
		Clients: live.clients.Load(), Buffers: live.buffers.Load(), Executables: live.executables.Load(),
		Events: live.events.Load(), Views: live.views.Load(), Calls: live.calls.Load(),
		Callbacks: live.callbacks.Load(), Allocations: live.allocations.Load(), Collected: live.collected.Load(),
	}
}
