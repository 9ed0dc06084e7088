package strategies

import (
	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/xla"
)

// Jit compiles each step to one program and runs it on the first device of a runtime.
func Jit(on *xla.Runtime) Strategy {
	autodiff.Install()
	return &jit{firstDevice{on, "jit"}}
}

type jit struct{ firstDevice }

func (j *jit) Compile(s Step) (Program, error) { return compile(j, s, xla.Placement{}) }
