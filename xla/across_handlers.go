package xla

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

// Each process runs a part of each program; the job's handlers exchange values.
type byHandlers struct {
	job Job
	// divide makes rank 0's client with a device per process.
	divide  func() (*pjrt.Client, error)
	divider *pjrt.Client
}

func rankLimit(ranks int) error {
	if ranks > maxCPUDevices {
		return fmt.Errorf("%w: XLA's CPU plugin divides a program over %d devices at most: start fewer processes", ErrUnimplemented, maxCPUDevices)
	}
	return nil
}

func newByHandlers(library *pjrt.Plugin, plugin Plugin, o *openOptions) (*byHandlers, error) {
	handlers := o.job.Handlers()
	switch {
	case o.store != nil:
		return nil, errors.New("CPUs exchange by MPI and need no store: leave WithStore out")
	case len(handlers) == 0:
		return nil, errors.New("the processes have no MPI to exchange by: start them by lazo run or mpirun")
	case o.client[cpuDevices] != int64(1):
		return nil, fmt.Errorf("client option %q is %v: each process is one device: start more processes", cpuDevices, o.client[cpuDevices])
	}
	if err := rankLimit(o.job.Size()); err != nil {
		return nil, err
	}
	for name, function := range handlers {
		if err := library.RegisterHandler(name, "Host", function); err != nil {
			return nil, err
		}
	}
	return &byHandlers{job: o.job, divide: func() (*pjrt.Client, error) {
		return newClient(library, plugin, map[string]any{cpuDevices: int64(o.job.Size())}, nil)
	}}, nil
}

func (b *byHandlers) open(library *pjrt.Plugin, plugin Plugin, options map[string]any) (made *pjrt.Client, ids [][]int, err error) {
	for rank := range b.job.Size() {
		ids = append(ids, []int{rank})
	}
	made, err = newClient(library, plugin, options, nil)
	return made, ids, err
}

func (b *byHandlers) compile(client *pjrt.Client, cache *cache, text string, options pjrt.CompileOptions) (*pjrt.Executable, fromCache, error) {
	module, err := b.divided(text, options)
	if err != nil {
		return nil, cacheOff, err
	}
	if module, err = b.job.Rewrite(module); err != nil {
		return nil, cacheOff, err
	}
	own := options
	own.Replicas, own.Partitions, own.SPMD, own.Shardy = 1, 1, false, false
	own.Devices = []int{client.AddressableDevices()[0].ID()}
	return cache.compile(client, unsafe.String(unsafe.SliceData(module), len(module)), own, func() (*pjrt.Executable, error) {
		return client.CompileHLO(module, own)
	})
}

func (b *byHandlers) divided(text string, options pjrt.CompileOptions) ([]byte, error) {
	const failed, made = 0, 1
	var message []byte
	if b.job.Rank() == 0 {
		module, err := b.partition(text, options)
		if err != nil {
			message = append([]byte{failed}, err.Error()...)
		} else {
			message = append([]byte{made}, module...)
		}
		if message, sendErr := b.job.Broadcast(message); err != nil || sendErr != nil {
			return message, errors.Join(err, sendErr)
		}
		return module, nil
	}
	message, err := b.job.Broadcast(nil)
	switch {
	case err != nil:
		return nil, err
	case len(message) == 0 || message[0] != made:
		return nil, fmt.Errorf("rank 0: %s", bytes.TrimPrefix(message, []byte{failed}))
	}
	return message[1:], nil
}

func (b *byHandlers) partition(text string, options pjrt.CompileOptions) ([]byte, error) {
	if b.divider == nil {
		var err error
		if b.divider, err = b.divide(); err != nil {
			return nil, err
		}
	}
	options.Devices = nil
	for _, d := range b.divider.Devices() {
		options.Devices = append(options.Devices, d.ID())
	}
	return b.divider.Partition([]byte(text), options)
}

func (b *byHandlers) close() error {
	if b.divider == nil {
		return nil
	}
	return b.divider.Close()
}
