package mpi

// #include <stdlib.h>
// #include "exchange.h"
import "C"

import (
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/lazo-ml/lazo/xla/pjrt"
)

// World is this process's part in a job of MPI. Its methods may be called from several goroutines; those that exchange
// values do so one after the other, and all ranks must call the same ones in the same order.
type World struct {
	library  *Library
	place    C.lazo_place
	warnings []string

	mu       sync.Mutex // one call of the host at a time
	finished bool
	leave    chan struct{}      // closed: MPI is to be finalized
	left     chan C.lazo_result // what that came to
}

// Init makes the process a part of its job: MPI_Init_thread, and communicators of its own for programs and for the
// host. It waits for all ranks of the job. A second Init in a process is [ErrTwice], a library for one thread
// [ErrThreads]. A process that no launcher started is a job of size 1.
//
// MPI may end the process where its own start fails.
func (l *Library) Init() (*World, error) {
	opened.Lock()
	defer opened.Unlock()
	var flag C.int
	if err := l.words(C.lazo_initialized(&l.table, &flag), "%s", l.path); err != nil {
		return nil, err
	}
	if opened.begun || flag != 0 {
		return nil, fmt.Errorf("mpi: %s: %w", l.path, ErrTwice)
	}
	opened.begun = true
	w := &World{library: l, leave: make(chan struct{}), left: make(chan C.lazo_result, 1)}
	began := make(chan C.lazo_result)
	// MPI wants to be finalized by the thread that initialized it, and its own threads are not to take Go's signals.
	go pjrt.WithoutSignals(func() {
		result := C.lazo_init(&l.table, &w.place)
		began <- result
		if result.name == nil && w.place.threads != 0 {
			<-w.leave
			w.left <- C.lazo_finalize()
		}
	})
	if err := l.words(<-began, "%s: start", l.path); err != nil {
		return nil, err
	}
	if w.place.threads == 0 {
		return nil, fmt.Errorf("mpi: %s (%s): %w: programs and the host call it at the same time: take a build of it with threads (Open MPI: --enable-mpi-thread-multiple; MPICH: --enable-threads=multiple)",
			l.path, l.Version(), ErrThreads)
	}
	w.warnings = warnings(w)
	return w, nil
}

// Library is the library that the job goes by.
func (w *World) Library() *Library { return w.library }

// Rank is this process's number, from 0.
func (w *World) Rank() int { return int(w.place.rank) }

// Size is the number of processes.
func (w *World) Size() int { return int(w.place.size) }

// LocalRank is this process's number among those that share its machine's memory.
func (w *World) LocalRank() int { return int(w.place.local_rank) }

// LocalSize is the number of processes that share the machine's memory.
func (w *World) LocalSize() int { return int(w.place.local_size) }

// Warnings are what will slow the job down, each a sentence with what to do: a process that the launcher bound to fewer
// processors than its share of the machine, or more processes than processors.
func (w *World) Warnings() []string { return append([]string{}, w.warnings...) }

// enter begins a call of the host's, one at a time, until w.mu is unlocked.
func (w *World) enter(what string) error {
	w.mu.Lock()
	if w.finished {
		w.mu.Unlock()
		return fmt.Errorf("mpi: %s: %w", what, ErrFinalized)
	}
	return nil
}

// said is the error of a call of the host's.
func (w *World) said(what string, r C.lazo_result) error {
	return w.library.words(r, "rank %d of %d: %s", w.Rank(), w.Size(), what)
}

// Max sets each word to its maximum over all ranks. All give as many words.
func (w *World) Max(words []int64) error {
	if err := w.enter("maximum"); err != nil {
		return err
	}
	defer w.mu.Unlock()
	return w.said("maximum", C.lazo_max((*C.int64_t)(unsafe.SliceData(words)), C.size_t(len(words))))
}

// Sum sets each value to its sum over all ranks, by the library's own addition: what programs exchange by, without a
// program. All give as many values.
func (w *World) Sum(values []float32) error {
	if err := w.enter("sum"); err != nil {
		return err
	}
	defer w.mu.Unlock()
	return w.said("sum", C.lazo_sum((*C.float)(unsafe.SliceData(values)), C.size_t(len(values))))
}

// Broadcast sets data to what the root rank has in it. All give the same length.
func (w *World) Broadcast(root int, data []byte) error {
	if root < 0 || root >= w.Size() {
		return fmt.Errorf("mpi: broadcast: root is %d, expected a rank of %d", root, w.Size())
	}
	if err := w.enter("broadcast"); err != nil {
		return err
	}
	defer w.mu.Unlock()
	return w.said("broadcast", C.lazo_broadcast(C.int(root), unsafe.Pointer(unsafe.SliceData(data)), C.size_t(len(data))))
}

// AllGather gives the parts of all ranks, in the order of the ranks. All give parts of one length.
func (w *World) AllGather(part []byte) ([]byte, error) {
	parts := make([]byte, len(part)*w.Size())
	if err := w.enter("gather"); err != nil {
		return nil, err
	}
	defer w.mu.Unlock()
	r := C.lazo_gather(unsafe.Pointer(unsafe.SliceData(part)), C.size_t(len(part)), unsafe.Pointer(unsafe.SliceData(parts)))
	if err := w.said("gather", r); err != nil {
		return nil, err
	}
	return parts, nil
}

// Barrier waits until all ranks are in it.
func (w *World) Barrier() error {
	if err := w.enter("barrier"); err != nil {
		return err
	}
	defer w.mu.Unlock()
	return w.said("barrier", C.lazo_barrier())
}

// Finalize leaves the job, when all ranks do. It waits for a call of the host that is under way; programs that
// exchange must have ended. All later calls give [ErrFinalized].
func (w *World) Finalize() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.finished {
		return fmt.Errorf("mpi: %w", ErrFinalized)
	}
	w.finished = true
	close(w.leave)
	return w.said("leave", <-w.left)
}

// Abort ends the processes of the whole job, this one with the exit code; it does not return. It may be called while
// other calls wait.
func (w *World) Abort(code int) { C.lazo_abort(C.int(code)) }

// Handlers are the collectives, for the platform "Host".
func (w *World) Handlers() []Handler { return handlers() }

func handlers() []Handler {
	return []Handler{
		{"lazo.all_reduce", unsafe.Pointer(C.lazo_all_reduce)},
		{"lazo.all_gather", unsafe.Pointer(C.lazo_all_gather)},
		{"lazo.reduce_scatter", unsafe.Pointer(C.lazo_reduce_scatter)},
		{"lazo.all_to_all", unsafe.Pointer(C.lazo_all_to_all)},
		{"lazo.collective_permute", unsafe.Pointer(C.lazo_collective_permute)},
		{"lazo.rank", unsafe.Pointer(C.lazo_rank)}, // no collective: which rank this is
	}
}

// Exchanges tells what the process is in now. It never waits.
func (w *World) Exchanges() Exchange {
	now := C.lazo_now()
	e := Exchange{Begun: uint64(now.begun), Ended: uint64(now.ended), Site: int64(now.site), Bytes: int64(now.bytes)}
	if e.Begun > 0 {
		e.Kind = C.GoString(C.lazo_kind(now.kind))
		e.Since = time.Duration(C.lazo_clock() - now.since)
	}
	return e
}

// setLimits sets how many elements go into one call of MPI, and up to how many bytes an array is packed with others.
func setLimits(elements, packed int) { C.lazo_set_limits(C.int64_t(elements), C.int64_t(packed)) }
