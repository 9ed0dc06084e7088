package autodiff

var (
	// Stock are GoMLX's own rules.
	Stock    = stock
	AxesFrom = axesFrom
)
