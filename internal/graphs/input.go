package graphs

import "errors"

// ErrInput is wrapped by errors that a model's input causes; see serve.ErrInput.
var ErrInput = errors.New("wrong input")

func Input(err error) error {
	if err == nil {
		return nil
	}
	return input{err}
}

type input struct{ error }

func (i input) Unwrap() error        { return i.error }
func (i input) Point() string        { return Point(i.error) }
func (i input) Is(target error) bool { return target == ErrInput }
