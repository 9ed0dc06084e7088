package register

import (
	"cmp"
	"context"

	"github.com/gomlx/compute"

	"github.com/lazo-ml/lazo/xla"
)

func init() { compute.Register("lazo", open) }

func open(plugin string) (compute.Backend, error) {
	runtime, err := xla.Open(context.Background(), cmp.Or(plugin, xla.CPU))
	if err != nil {
		return nil, err // not a nil *Runtime in the interface
	}
	return runtime, nil
}
