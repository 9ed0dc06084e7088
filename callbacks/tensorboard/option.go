package tensorboard

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/callbacks"
)

// Option is a setting of [Write] and [New].
type Option func(*settings)

type settings struct {
	evaluations []string
	parameters  map[string]any
	background  callbacks.Background
	create      func(path string) (io.WriteCloser, error)
	err         error
}

// training is the folder of what is not logged by an evaluation.
const training = "train"

// queue is longer than the default: numbers take little memory.
const queue = 256

func newSettings(options []Option) settings {
	s := settings{evaluations: []string{"test", "val"}, background: callbacks.Background{Queue: queue}, create: createFile}
	for _, o := range options {
		if o != nil {
			o(&s)
		}
	}
	return s
}

// Evaluations names the evaluations of the run, in place of "test" and "val": an entry whose name ends in "_" and one
// of these, or begins with one and "_", is written to the folder of that name, without it. With none, all entries are
// written to that of the training.
func Evaluations(names ...string) Option {
	names = slices.Clone(names)
	return func(s *settings) {
		for _, name := range names {
			if name == training || name == "." || !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) || escape(name) != name {
				s.err = errors.Join(s.err, fmt.Errorf("evaluation %q: want the name of a folder other than %q", name, training))
			}
		}
		// The longest comes first: of "test" and "big_test", loss_big_test is the second's.
		slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
		s.evaluations = names
	}
}

// Hyperparameters adds the run to TensorBoard's table of hyperparameters, as one session with its settings, its start
// and whether it ended without an error. Within the values, a map makes names with dots, a list names with its indices,
// and nil an empty text; other values must be booleans, numbers, strings, or have a String method. For a resumed run
// TensorBoard shows the first end that was written; a killed process writes none.
func Hyperparameters(values map[string]any) Option {
	values = maps.Clone(values)
	return func(s *settings) { s.parameters = values }
}

// InBackground sets how [Write] runs beside the loop. A Queue of 0 is 256 reports, which is also the default.
func InBackground(b callbacks.Background) Option {
	return func(s *settings) {
		if b.Queue < 0 || b.Deadline < 0 {
			s.err = errors.Join(s.err, fmt.Errorf("background: queue and deadline must not be negative, got %d and %s", b.Queue, b.Deadline))
		}
		b.Queue = cmp.Or(b.Queue, queue)
		s.background = b
	}
}
