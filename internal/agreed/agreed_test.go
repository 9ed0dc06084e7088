package agreed_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/agreed"
)

// together returns the largest of each word, as a job does.
func together(all ...[]int64) []int64 {
	most := append([]int64(nil), all[0]...)
	for _, words := range all {
		for i, w := range words {
			most[i] = max(most[i], w)
		}
	}
	return most
}

func TestPair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(-1<<46, 1<<46), 1, 8).Draw(t, "values")
		var all [][]int64
		for rank, v := range values {
			words := make([]int64, 2)
			agreed.SetPair(words, v, int64(rank))
			all = append(all, words)
		}
		most, least, highest, lowest := agreed.Pair(together(all...))
		for _, v := range values {
			require.LessOrEqual(t, v, most)
			require.GreaterOrEqual(t, v, least)
		}
		require.Equal(t, most, values[highest])
		require.Equal(t, least, values[lowest])
	})
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"a":                            "a",
		"loss is NaN: größer":          "loss is NaN: größer",
		"up to a zero\x00 byte":        "up to a zero",
		strings.Repeat("x", 500):       strings.Repeat("x", 448),
		"x" + strings.Repeat("ö", 300): "x" + strings.Repeat("ö", 223), // the last character does not fit
	} {
		var own, other agreed.Text
		own.Set(text)
		got := agreed.Text(together(own[:], other[:]))
		require.Equal(t, want, got.String())
	}
}

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
