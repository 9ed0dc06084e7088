package mpi

// #include <stdlib.h>
// #include "exchange.h"
import "C"

import (
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

// World is this process's membership of an MPI job. Goroutines may share it. Collective methods run one at a time; all
// ranks must call them in the same order.
type World struct {
	library  *Library
	place    C.lazo_place
	warnings []string

	mu       sync.Mutex
	finished bool
	leave    chan struct{} // closed to finalize MPI
	left     chan C.lazo_result
}

// Init initializes MPI, with separate communicators for programs and the host, and waits for all ranks. Without a
// launcher the job has size 1. A second Init returns [ErrTwice], a library without threads [ErrThreads]. MPI may end a
// process that it cannot start.
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
	go func() { // the thread that initializes MPI must finalize it
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var result C.lazo_result
		pjrt.WithoutSignals(func() { result = C.lazo_init(&l.table, &w.place) })
		began <- result
		if result.name == nil && w.place.threads != 0 {
			<-w.leave
			pjrt.WithoutSignals(func() { result = C.lazo_finalize() })
			w.left <- result
		}
	}()
	if err := l.words(<-began, "%s: start", l.path); err != nil {
		return nil, err
	}
	if w.place.threads == 0 {
		return nil, fmt.Errorf("mpi: %s (%s): %w: programs and the host call it at the same time: use a build of it with threads (Open MPI: --enable-mpi-thread-multiple; MPICH: --enable-threads=multiple)",
			l.path, l.Version(), ErrThreads)
	}
	w.warnings = warnings(w)
	opened.world = w
	return w, nil
}

func Joined() *World {
	opened.Lock()
	defer opened.Unlock()
	return opened.world
}

func (w *World) Library() *Library { return w.library }

func (w *World) Rank() int { return int(w.place.rank) }

func (w *World) Size() int { return int(w.place.size) }

func (w *World) LocalRank() int { return int(w.place.local_rank) }

func (w *World) LocalSize() int { return int(w.place.local_size) }

// Warnings returns advice if this process has fewer processors than its share, or processes outnumber processors.
func (w *World) Warnings() []string { return append([]string{}, w.warnings...) }

// The caller of enter unlocks w.mu.
func (w *World) enter(what string) error {
	w.mu.Lock()
	if w.finished {
		w.mu.Unlock()
		return fmt.Errorf("mpi: %s: %w", what, ErrFinalized)
	}
	return nil
}

func (w *World) said(what string, r C.lazo_result) error {
	return w.library.words(r, "rank %d of %d: %s", w.Rank(), w.Size(), what)
}

// Max sets each word to its maximum over all ranks, which pass equally many.
func (w *World) Max(words []int64) error {
	if err := w.enter("maximum"); err != nil {
		return err
	}
	defer w.mu.Unlock()
	return w.said("maximum", C.lazo_max((*C.int64_t)(unsafe.SliceData(words)), C.size_t(len(words))))
}

// Sum sets each value to its sum over all ranks, which pass equally many. It adds as programs do.
func (w *World) Sum(values []float32) error {
	if err := w.enter("sum"); err != nil {
		return err
	}
	defer w.mu.Unlock()
	return w.said("sum", C.lazo_sum((*C.float)(unsafe.SliceData(values)), C.size_t(len(values))))
}

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

func (w *World) Barrier() error {
	if err := w.enter("barrier"); err != nil {
		return err
	}
	defer w.mu.Unlock()
	return w.said("barrier", C.lazo_barrier())
}

// Finalize leaves the job, with all ranks. It waits for running calls; programs must not exchange. Later calls return
// [ErrFinalized].
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

// Abort ends all processes of the job, even during other calls, and does not return.
func (w *World) Abort(code int) { C.lazo_abort(C.int(code)) }

// Handlers returns the C functions that programs call, by name, for the platform "Host" of
// [pjrt.Plugin.RegisterHandler].
func (w *World) Handlers() map[string]unsafe.Pointer {
	return map[string]unsafe.Pointer{
		"lazo.all_reduce":         unsafe.Pointer(C.lazo_all_reduce),
		"lazo.all_gather":         unsafe.Pointer(C.lazo_all_gather),
		"lazo.reduce_scatter":     unsafe.Pointer(C.lazo_reduce_scatter),
		"lazo.all_to_all":         unsafe.Pointer(C.lazo_all_to_all),
		"lazo.collective_permute": unsafe.Pointer(C.lazo_collective_permute),
		"lazo.rank":               unsafe.Pointer(C.lazo_rank),
	}
}

func (w *World) Exchanges() Exchange {
	now := C.lazo_now()
	e := Exchange{Begun: uint64(now.begun), Ended: uint64(now.ended), Site: int64(now.site), Bytes: int64(now.bytes)}
	if e.Begun > 0 {
		e.Kind = C.GoString(C.lazo_kind(now.kind))
		e.Since = time.Duration(C.lazo_clock() - now.since)
	}
	return e
}

func setLimits(elements, packed int) { C.lazo_set_limits(C.int64_t(elements), C.int64_t(packed)) }
