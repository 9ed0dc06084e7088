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

const training = "train"

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

// Evaluations names the run's evaluations, by default "test" and "val". An entry whose name ends in "_test" or begins
// with "test_" is written to the folder test without it. Evaluations() writes all to "train".
func Evaluations(names ...string) Option {
	names = slices.Clone(names)
	return func(s *settings) {
		for _, name := range names {
			if name == training || name == "." || !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) || escape(name) != name {
				s.err = errors.Join(s.err, fmt.Errorf("evaluation %q: want the name of a folder other than %q", name, training))
			}
		}
		// Longest first: "big_test" before "test".
		slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
		s.evaluations = names
	}
}

// Hyperparameters adds the run to TensorBoard's table of hyperparameters, with its start and whether it ended without
// an error. Maps become names with dots, lists names with indices, nil an empty text. Other values must be booleans,
// numbers, strings, or have a String method. For a resumed run TensorBoard shows the first end; a killed process has
// none.
func Hyperparameters(values map[string]any) Option {
	values = maps.Clone(values)
	return func(s *settings) { s.parameters = values }
}

// InBackground sets how [Write] runs in the background. Queue's default is 256.
func InBackground(b callbacks.Background) Option {
	return func(s *settings) {
		if b.Queue < 0 || b.Deadline < 0 {
			s.err = errors.Join(s.err, fmt.Errorf("background: queue and deadline must not be negative, got %d and %s", b.Queue, b.Deadline))
		}
		b.Queue = cmp.Or(b.Queue, queue)
		s.background = b
	}
}
