package data_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

// golden has scikit-learn's folds.
type golden struct {
	Y, Groups []int32
	Folds     map[string]struct {
		Plain, Grouped []int
		Stratified     [][]int
	}
}

func readGolden(t *testing.T) (g golden) {
	text, err := os.ReadFile("tables/testdata/preparation.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &g))
	return g
}

func field(t testing.TB, set *data.Set, name string) data.Array {
	a, err := set.Field(name)
	require.NoError(t, err)
	return a
}

// labelled is a set of the golden file's labels and groups, and the number of each example, by the types that say them.
func labelled(t *testing.T, g golden) *data.Set {
	n := len(g.Y)
	texts, numbers := make([]string, n), make([]int32, n)
	for i, v := range g.Y {
		texts[i], numbers[i] = strconv.Itoa(int(v)), int32(i)
	}
	set, err := data.New(data.Y(g.Y, n), data.Named("class", texts, n), data.Named("group", g.Groups, n), data.Named("number", numbers, n))
	require.NoError(t, err)
	return set
}

func flat[T any](t *testing.T, set *data.Set, name string) []T {
	values, ok := field(t, set, name).Flat.([]T)
	require.True(t, ok)
	return values
}

// apart checks that two sets have no value of a field in common.
func apart(t *testing.T, a, b *data.Set, name string) {
	t.Helper()
	for _, v := range flat[int32](t, a, name) {
		require.NotContains(t, flat[int32](t, b, name), v)
	}
}

// The numbers of examples in the parts are those of scikit-learn's KFold, StratifiedKFold and GroupKFold.
func TestFolds(t *testing.T) {
	g := readGolden(t)
	set := labelled(t, g)
	for k, want := range g.Folds {
		k, err := strconv.Atoi(k)
		require.NoError(t, err)
		for seed := range uint64(5) {
			for kind, options := range map[string][]data.SplitOption{
				"plain": nil, "stratified": {data.Stratified("y")}, "stratified by texts": {data.Stratified("class")}, "grouped": {data.Grouped("group")},
			} {
				var sizes []int
				var classes [][]int
				var all, again []int32
				for fold, err := range set.Folds(k, seed, options...) {
					require.NoError(t, err)
					require.Equal(t, set.Len(), fold.Train.Len()+fold.Test.Len())
					apart(t, fold.Train, fold.Test, "number")
					sizes = append(sizes, fold.Test.Len())
					var places []int32
					for _, r := range fold.TestRows {
						places = append(places, int32(r))
					}
					require.Equal(t, flat[int32](t, fold.Test, "number"), places)
					counts := make([]int, 3)
					for _, c := range flat[int32](t, fold.Test, "y") {
						counts[c]++
					}
					classes = append(classes, counts)
					all = append(all, flat[int32](t, fold.Test, "number")...)
					if kind == "grouped" {
						apart(t, fold.Train, fold.Test, "group")
					}
				}
				for fold, err := range set.Folds(k, seed, options...) {
					require.NoError(t, err)
					again = append(again, flat[int32](t, fold.Test, "number")...)
				}
				require.Equal(t, all, again, "a function of the seed")
				slices.Sort(all)
				require.Len(t, slices.Compact(all), set.Len(), "each example is in one part")
				name := fmt.Sprintf("%s, %d folds, seed %d", kind, k, seed)
				switch kind {
				case "plain":
					require.Equal(t, want.Plain, sizes, name)
				case "grouped":
					slices.Sort(sizes)
					require.Equal(t, want.Grouped, sizes, name)
				default:
					require.Equal(t, want.Stratified, classes, name)
				}
			}
		}
	}
}

func TestSplitGrouped(t *testing.T) {
	set := labelled(t, readGolden(t))
	var firsts [][]int32
	for seed := range uint64(20) {
		train, test, err := set.Split(0.7, seed, data.Grouped("group"))
		require.NoError(t, err)
		apart(t, train, test, "group")
		apart(t, train, test, "number")
		require.Equal(t, set.Len(), train.Len()+test.Len())
		require.LessOrEqual(t, train.Len(), set.Len()*7/10)
		require.Greater(t, train.Len(), set.Len()/2, "no group that would fit is left out")
		first := flat[int32](t, train, "number")
		slices.Sort(first)
		firsts = append(firsts, first)
	}
	require.NotEqual(t, firsts[0], firsts[1])
}

func TestSplitsRefuse(t *testing.T) {
	bools, floats, numbers := make([]bool, 10), make([]float32, 10), make([]int32, 10)
	bools[0] = true
	set, err := data.New(data.Named("b", bools, 10), data.X(floats, 10, 1), data.Named("one", numbers, 10), data.Named("f", floats, 10))
	require.NoError(t, err)
	for _, row := range []struct {
		want    string
		k       int
		options []data.SplitOption
	}{
		{"data: 1 folds: expected at least 2, and at most the number of examples, 10", 1, nil},
		{"data: 11 folds: expected at least 2", 11, nil},
		{"data: 2 folds: class true has 1 examples, expected one for each fold", 2, []data.SplitOption{data.Stratified("b")}},
		{`data: 2 folds: field "one" has 1 groups, expected one for each fold`, 2, []data.SplitOption{data.Grouped("one")}},
		{`data: 2 folds: the set has no field "z"; there are "b", "x", "one", "f"`, 2, []data.SplitOption{data.Grouped("z")}},
		{`data: 2 folds: field "f" is float32 [10], expected an integer, a truth value or a text for each example`, 2, []data.SplitOption{data.Grouped("f")}},
		{`data: 2 folds: field "x" is float32 [10 1], expected an integer`, 2, []data.SplitOption{data.Grouped("x")}},
		{"data: 2 folds: expected one data.Stratified or one data.Grouped", 2, []data.SplitOption{data.Grouped("one"), data.Stratified("b")}},
	} {
		_, err := data.Peek(set.Folds(row.k, 0, row.options...))
		require.ErrorContains(t, err, row.want)
	}
	_, _, err = set.Split(0.5, 0, data.Grouped("one"))
	require.EqualError(t, err, "data: split grouped: 10 examples at the fraction 0.5: one side would be empty")
	_, _, err = set.Split(0.5, 0, data.Stratified("b"))
	require.EqualError(t, err, "data: split stratified: class true has 1 examples: at the fraction 0.5 one side would have none")
	_, _, err = set.Split(0.5, 0, data.Stratified("b"), data.Stratified("b"))
	require.EqualError(t, err, "data: split stratified and stratified: expected one data.Stratified or one data.Grouped")
}

func TestSplitStratified(t *testing.T) {
	y := make([]int32, 100)
	for i := range y {
		if i < 10 {
			y[i] = 7
		}
	}
	set, err := data.New(data.Y(y, 100))
	require.NoError(t, err)
	rare := func(s *data.Set) (n int) {
		for _, v := range s.Fields()[0].Array.Flat.([]int32) {
			if v == 7 {
				n++
			}
		}
		return n
	}
	for seed := range uint64(20) {
		train, test, err := set.Split(0.8, seed, data.Stratified("y"))
		require.NoError(t, err)
		require.Equal(t, []int{80, 20, 8, 2}, []int{train.Len(), test.Len(), rare(train), rare(test)})
	}
	for want, row := range map[string]struct {
		field    string
		fraction float64
	}{
		"data: split stratified: the fraction is 1": {"y", 1},
		`no field "z"`: {"z", 0.5},
		"class 7 has 10 examples: at the fraction 0.99 one side would have none": {"y", 0.99},
	} {
		_, _, err := set.Split(row.fraction, 1, data.Stratified(row.field))
		require.ErrorContains(t, err, want)
	}
}
