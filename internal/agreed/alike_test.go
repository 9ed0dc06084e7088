package agreed_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/agreed"
)

func setting(what, text string) agreed.Setting {
	return agreed.Setting{What: what, Text: text, Key: text}
}

func TestDifference(t *testing.T) {
	one, two, three := setting("task 1", "train"), setting("task 2", "test"), setting("task 2", "save")
	unnamed := agreed.Setting{What: "task 2", Text: "test", Key: "every 3 steps"}
	for name, c := range map[string]struct {
		first, second []agreed.Setting
		want          string
	}{
		"another":        {[]agreed.Setting{one, two}, []agreed.Setting{one, three}, "task 2: rank 1 has test, rank 4 save"},
		"one more":       {[]agreed.Setting{one, two}, []agreed.Setting{one}, "task 2: rank 1 has test, rank 4 none"},
		"one less":       {[]agreed.Setting{one}, []agreed.Setting{one, two}, "task 2: rank 4 has test, rank 1 none"},
		"the same text":  {[]agreed.Setting{one, two}, []agreed.Setting{one, unnamed}, "task 2: rank 1 has test [test], rank 4 test [every 3 steps]"},
		"no other parts": {[]agreed.Setting{one}, []agreed.Setting{one}, "the order or number of their tasks and callbacks"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, name == "no other parts", agreed.Sum(c.first) == agreed.Sum(c.second))
			// The second process sends what the first passes as its own in a run of the same kind.
			sent := make(chan string)
			theirs, failed := make(chan string), make(chan error, 1)
			go func() {
				got, err := agreed.Difference(c.second, 1, 4, func(own string) (string, string, error) {
					sent <- own
					return <-theirs, own, nil
				})
				if err == nil && got != c.want {
					err = errors.New(got)
				}
				failed <- err
			}()
			got, err := agreed.Difference(c.first, 1, 4, func(own string) (string, string, error) {
				other := <-sent
				theirs <- own
				return own, other, nil
			})
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.NoError(t, <-failed)
		})
	}
	broken := errors.New("broken")
	_, err := agreed.Difference(nil, 0, 1, func(string) (string, string, error) { return "", "", broken })
	require.Equal(t, broken, err)
}
