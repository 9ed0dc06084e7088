package pjrt

// #include <stdlib.h>
// #include "callback.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/cgo"
	"time"
	"unsafe"

	"github.com/lazo-ml/lazo/internal/shield"
)

type keyValues struct {
	handle cgo.Handle
	cell   *C.uintptr_t
}

func newKeyValues(store KeyValueStore) (*keyValues, error) {
	cell, err := newCell(store)
	if err != nil {
		return nil, err
	}
	return &keyValues{cgo.Handle(*cell), cell}, nil
}

func (k *keyValues) give(args *C.lazo_Client_Create_Args) { C.lazo_key_values(args, k.cell) }

func (k *keyValues) free() {
	if k != nil {
		freeCell(k.cell)
	}
}

func newCell(value any) (*C.uintptr_t, error) {
	cell := (*C.uintptr_t)(allocate(C.sizeof_uintptr_t))
	if cell == nil {
		return nil, fmt.Errorf("pjrt: %w: no C memory for a callback", ErrOutOfMemory)
	}
	*cell = C.uintptr_t(cgo.NewHandle(value))
	live.callbacks.Add(1)
	return cell, nil
}

func freeCell(cell *C.uintptr_t) {
	cgo.Handle(*cell).Delete()
	free(unsafe.Pointer(cell))
	live.callbacks.Add(-1)
}

func allocate(size C.size_t) unsafe.Pointer {
	block := C.malloc(size)
	if block != nil {
		live.allocations.Add(1)
	}
	return block
}

func free(block unsafe.Pointer) {
	C.free(block)
	live.allocations.Add(-1)
}

//export lazoFree
func lazoFree(value *C.char) { free(unsafe.Pointer(value)) }

//export lazoGet
func lazoGet(args *C.lazo_KeyValueGetCallback_Args) unsafe.Pointer {
	err := called(args.user_arg, func(store KeyValueStore) error {
		value, err := store.Get(goString(args.key, args.key_size), time.Duration(args.timeout_in_ms)*time.Millisecond)
		if err != nil {
			return err
		}
		return giveValue(value, &args.value, &args.value_size, &args.value_deleter_callback)
	})
	return cError(err, args.callback_error)
}

//export lazoTryGet
func lazoTryGet(args *C.lazo_KeyValueTryGetCallback_Args) unsafe.Pointer {
	err := called(args.user_arg, func(store KeyValueStore) error {
		value, err := store.TryGet(goString(args.key, args.key_size))
		if err != nil {
			return err
		}
		return giveValue(value, &args.value, &args.value_size, &args.value_deleter_callback)
	})
	return cError(err, args.callback_error)
}

//export lazoPut
func lazoPut(args *C.lazo_KeyValuePutCallback_Args) unsafe.Pointer {
	err := called(args.user_arg, func(store KeyValueStore) error {
		return store.Put(goString(args.key, args.key_size), goBytes(args.value, args.value_size))
	})
	return cError(err, args.callback_error)
}

// The plugin's frames must not see panics.
func called(cell unsafe.Pointer, f func(KeyValueStore) error) error {
	err := shield.Do(func() error { return f(cgo.Handle(*(*C.uintptr_t)(cell)).Value().(KeyValueStore)) })
	if errors.As(err, new(*shield.Panic)) {
		return fmt.Errorf("pjrt: the key-value store: %w", err)
	}
	return err
}

// The plugin calls deleter.
func giveValue(value []byte, to **C.char, size *C.size_t, deleter *unsafe.Pointer) error {
	block := allocate(C.size_t(max(len(value), 1)))
	if block == nil {
		return fmt.Errorf("pjrt: %w: no C memory for a value of %d bytes", ErrOutOfMemory, len(value))
	}
	copy(unsafe.Slice((*byte)(block), len(value)), value)
	*to, *size, *deleter = (*C.char)(block), C.size_t(len(value)), C.lazo_deleter()
	return nil
}

func cError(err error, make unsafe.Pointer) unsafe.Pointer {
	if err == nil {
		return nil
	}
	message := []byte(err.Error())
	return C.lazo_make_error(make, C.int(codeOf(err)), (*C.char)(unsafe.Pointer(unsafe.SliceData(message))), C.size_t(len(message)))
}

func codeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	for code, sentinel := range codeErrors {
		if errors.Is(err, sentinel) {
			return code
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return Cancelled
	}
	return Unknown
}
