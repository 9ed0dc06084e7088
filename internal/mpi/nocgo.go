//go:build !cgo

package mpi

import (
	"fmt"
	"unsafe"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

var errNoCgo = fmt.Errorf("mpi: %w: %w", ErrNotLoadable, pjrt.ErrNoCgo)

type (
	Library struct{}
	World   struct{}
)

func Open(string) (*Library, error) { return nil, errNoCgo }
func Joined() *World                { return nil }

func (*Library) Path() string          { return "" }
func (*Library) Version() string       { return "" }
func (*Library) Flavour() Flavour      { return 0 }
func (*Library) Init() (*World, error) { return nil, errNoCgo }

func (*World) Library() *Library                   { return nil }
func (*World) Rank() int                           { return 0 }
func (*World) Size() int                           { return 0 }
func (*World) LocalRank() int                      { return 0 }
func (*World) LocalSize() int                      { return 0 }
func (*World) Warnings() []string                  { return nil }
func (*World) Max([]int64) error                   { return errNoCgo }
func (*World) Sum([]float32) error                 { return errNoCgo }
func (*World) Broadcast(int, []byte) error         { return errNoCgo }
func (*World) AllGather([]byte) ([]byte, error)    { return nil, errNoCgo }
func (*World) Barrier() error                      { return errNoCgo }
func (*World) Finalize() error                     { return errNoCgo }
func (*World) Abort(int)                           {}
func (*World) Handlers() map[string]unsafe.Pointer { return nil }
func (*World) Exchanges() Exchange                 { return Exchange{} }
