package text_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data/text"
)

// The expected texts and words are Python's and scikit-learn's (testdata/normalization.py).
func TestNormalization_equalsPython(t *testing.T) {
	file, err := os.ReadFile("testdata/normalization.json")
	require.NoError(t, err)
	var cases []struct {
		Text, NFC, NFD, NFKC, NFKD, Lower, Stripped, Together string
		Words                                                 []string
	}
	require.NoError(t, json.Unmarshal(file, &cases))
	require.Greater(t, len(cases), 30)
	for _, c := range cases {
		for _, of := range []struct {
			by   text.Normalization
			want string
		}{
			{text.Normalization{}, c.Text},
			{text.Normalization{Form: "NFC"}, c.NFC},
			{text.Normalization{Form: "NFD"}, c.NFD},
			{text.Normalization{Form: "NFKC"}, c.NFKC},
			{text.Normalization{Form: "NFKD"}, c.NFKD},
			{text.Normalization{Lower: true}, c.Lower},
			{text.Normalization{Lower: true, StripAccents: true}, c.Stripped},
			{text.Normalization{Form: "NFC", Lower: true, StripAccents: true}, c.Together},
		} {
			got, err := of.by.Apply(c.Text)
			require.NoError(t, err)
			require.Equal(t, of.want, got, "%q by %+v", c.Text, of.by)
		}
		require.Equal(t, c.Words, append([]string{}, text.Words(c.Text)...), "%q", c.Text)
	}
}

func TestNormalization_namesAnUnknownFormAndInvalidText(t *testing.T) {
	_, err := text.Normalization{Form: "nfc"}.Apply("")
	require.EqualError(t, err, `text: normalization: the form is "nfc", expected NFC, NFD, NFKC, NFKD, or none`)
	_, err = text.Normalization{}.Apply("ab\xff")
	require.EqualError(t, err, "text: the text is not valid UTF-8 at byte 2")
}
