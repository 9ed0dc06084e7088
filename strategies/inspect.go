package strategies

import "github.com/lazo-ml/lazo/xla"

// Cost is what the compiler reckons that a run of the step takes: see [xla.Program.Cost].
func (p *program) Cost() (xla.Cost, error) { return p.compiled.Cost() }

// Memory is what the compiler reckons that a run of the step needs: see [xla.Program.Memory].
func (p *program) Memory() (xla.Memory, error) { return p.compiled.Memory() }
