package optim

// Scaled is the optimizer with a [LossScale] as its first link, and that link, which the step's losses are to be given
// too. One that begins with a LossScale already is returned as it is.
func (o *Optimizer) Scaled() (*Optimizer, LossScale) {
	if len(o.chain) > 0 {
		if scale, ok := o.chain[0].(LossScale); ok {
			return o, scale
		}
	}
	scale := LossScale{}
	return New(o.rate, append(Chain{scale}, o.chain...)...), scale
}
