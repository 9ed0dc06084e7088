package flaxlike

import "github.com/lazo-ml/lazo/internal/names"

// ErrUnknownName is wrapped by the error about an unknown loss, metric, optimizer, activation or output.
var ErrUnknownName = names.ErrUnknown

func nearest(name string, known []string) string { return names.Nearest(name, known) }
