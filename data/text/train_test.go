package text

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The order of the texts counts for nothing, and the smallest vocabulary has the bytes alone.
func TestBPE_training(t *testing.T) {
	lines := slices.Collect(strings.Lines(read(t, "corpus.txt")))
	slices.Reverse(lines)
	b, err := BPETraining{Size: 500, Special: special}.Train(each(lines...))
	require.NoError(t, err)
	requireEqual(t, trained(t), b)

	few, err := BPETraining{Size: 1000}.Train(each("ab ab ab xy"))
	require.NoError(t, err)
	require.Equal(t, 258, few.Size(), "ab and its space: xy comes once")
	id, ok := few.ID(" ab")
	require.True(t, ok)
	require.Equal(t, int32(257), id)
	once, err := BPETraining{Size: 1000, MinCount: 1}.Train(each("ab ab ab xy"))
	require.NoError(t, err)
	require.Equal(t, 260, once.Size())
	none, err := BPETraining{Size: 256}.Train(each())
	require.NoError(t, err)
	ids, err := none.Encode("é")
	require.NoError(t, err)
	require.Len(t, ids, 2)
	part, ok := none.Token(ids[0])
	require.True(t, ok)
	require.Equal(t, "\xc3", part)

	for message, try := range map[string]BPETraining{
		"text: BPETraining: Size is 256, expected at least 257, for 256 bytes and 1 special tokens":                                         {Size: 256, Special: []string{"<s>"}},
		"text: BPETraining: MinCount is -1, expected at least 1":                                                                            {Size: 300, MinCount: -1},
		`text: BPETraining: the special token "<s>" appears twice`:                                                                          {Size: 300, Special: []string{"<s>", "<s>"}},
		"text: BPETraining: a special token is empty":                                                                                       {Size: 300, Special: []string{""}},
		`text: BPETraining: the special token "the" could be learned from text as well: take one with brackets around a word, as "<|the|>"`: {Size: 300, Special: []string{"the"}},
	} {
		_, err := try.Train(each("the"))
		require.EqualError(t, err, message)
	}
	broken := errors.New("the disk is gone")
	_, err = BPETraining{Size: 300}.Train(func(yield func(string, error) bool) { yield("", broken) })
	require.ErrorIs(t, err, broken)
}
