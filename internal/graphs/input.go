package graphs

import "errors"

// ErrInput is wrapped by an error that is the fault of the input of a model, whatever the moment; see serve.ErrInput.
var ErrInput = errors.New("wrong input")

// Input marks an error as one of the input. Its text stays.
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
