package flaxlike

import (
	"context"
	"sync"

	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/xla"
)

// process is the runtime of all models without a strategy: each runtime has its own threads and memory.
var process struct {
	gate    gate.Gate
	runtime *xla.Runtime
	models  int
}

// borrow returns the shared runtime and its release. options apply if it opens it.
func borrow(ctx context.Context, options ...xla.Option) (on *xla.Runtime, giveBack func() error, err error) {
	p := &process
	if err := p.gate.Change(ctx); err != nil {
		return nil, nil, err
	}
	defer p.gate.DoneChanging()
	if p.models == 0 {
		if p.runtime, err = xla.Open(ctx, xla.CPU, options...); err != nil {
			return nil, nil, err
		}
	}
	p.models++
	return p.runtime, sync.OnceValue(func() error {
		if err := p.gate.Change(context.Background()); err != nil {
			return err
		}
		defer p.gate.DoneChanging()
		if p.models--; p.models > 0 {
			return nil
		}
		return p.runtime.Close()
	}), nil
}
