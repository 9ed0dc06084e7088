package tensorboard

import "io"

// CreateWith has files made by a function.
func CreateWith(create func(path string) (io.WriteCloser, error)) Option {
	return func(s *settings) { s.create = create }
}

var Escape = escape
