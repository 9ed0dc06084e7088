package strategies

import "github.com/lazo-ml/lazo/xla"

// Cost is what the compiler reckons that a run of the step takes: see [xla.Program.Cost].
func (p *jitProgram) Cost() (xla.Cost, error) { return p.program.Cost() }

// Memory is what the compiler reckons that a run of the step needs: see [xla.Program.Memory].
func (p *jitProgram) Memory() (xla.Memory, error) { return p.program.Memory() }
