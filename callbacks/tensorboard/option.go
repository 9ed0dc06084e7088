package tensorboard

import (
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

// training is the folder of what no evaluation logged.
const training = "train"

// queue is longer than loop's own: numbers take little memory.
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

// Evaluations names the evaluations of the run, in place of "test" and "val": an entry whose name ends in "_" and one of
// these goes to the folder of that name, without the ending. With none, all entries are the training's.
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

// Hyperparameters has the run in TensorBoard's table of hyperparameters, as one session with its scalars: how it was set,
// when it began, whether it ended well. A map within gives names with dots, a list names with its indices, nil the empty
// text, as in clu; other values are booleans, numbers, texts, or have a String method. Of a run that was resumed TensorBoard shows
// the first end that was written: a kill writes none.
func Hyperparameters(values map[string]any) Option {
	values = maps.Clone(values)
	return func(s *settings) { s.parameters = values }
}

// InBackground sets how [Write] runs beside the loop; without it up to 256 reports wait. A Queue of 0 is these 256 too.
func InBackground(b callbacks.Background) Option {
	return func(s *settings) {
		if b.Queue < 0 || b.Deadline < 0 {
			s.err = errors.Join(s.err, fmt.Errorf("background: queue and deadline must not be negative, got %d and %s", b.Queue, b.Deadline))
		}
		if b.Queue == 0 {
			b.Queue = queue
		}
		s.background = b
	}
}
