package archtest

import "testing"

// silence: libraries print nothing unless the user passes a writer or a logger.
var silence = rule{
	in: libraries,
	names: []string{
		"os.Stdout", "os.Stderr", "log/slog.Default", "log/slog.SetDefault", "log/slog.Debug", "log/slog.Info", "log/slog.Warn", "log/slog.Error", "log/slog.Log",
		"log/slog.DebugContext", "log/slog.InfoContext", "log/slog.WarnContext", "log/slog.ErrorContext", "log/slog.LogAttrs",
		"fmt.Print", "fmt.Printf", "fmt.Println", "log.*", "print", "println",
		"os.WriteFile", "os.Create", // they block on a pipe; internal/regular does not
	},
	but: map[string]string{
		"loop/signal.go: log.Print":                        "Exit is the end of a program, and prints its error",
		"internal/records/backlog.go: log/slog.Warn":       "a disk that is full is no error while nothing is lost, and must be known at once (S52)",
		"callbacks/heartbeat.go: log/slog.WarnContext":     "as internal/records/backlog.go",
		"callbacks/notify.go: log/slog.WarnContext":        "a failed notification does not change the run's result",
		"callbacks/mlflow/record.go: log/slog.WarnContext": "as callbacks/notify.go: a server does not change the run's result",
		"callbacks/mlflow/send.go: log/slog.Warn":          "as internal/records/backlog.go",
		"loop/check.go: log/slog.InfoContext":              "what a run does not reach is no error, and a wrong number otherwise (S05); a program silences it by slog.SetDefault",
		"dist/failure.go: os.Stderr":                       "the end of a process whose job failed, where nobody is left to return an error to, why Join does not return, and for whom ranks wait",
		"xla/open.go: log/slog.Warn":                       "a program without cgo runs on another backend than it names; a program silences it by slog.SetDefault",
		"xla/across.go: os.Stderr":                         "several processes of one job that each train a model of their own, and nobody has asked for a log",
		"dist/join.go: os.WriteFile":                       "the note, in a folder of lazo run alone, of a rank that has not left",
		"internal/golden/golden.go: os.WriteFile":          "a test that is run with -write-golden",
		"internal/plugintest/walk.go: os.WriteFile":        "a text for tests",
		"flaxlike/fit_settings.go: os.Stderr":              "the writer that Fit's Output stands for, unless the run is Silent",
	},
	say: "take a writer or a logger from the user, or return an error (a file: internal/regular)",
}

// Silence unless asked: no library package prints, or takes the default logger.
func TestR26_librariesAreSilent(t *testing.T) {
	t.Logf("R26: %d files of libraries: none prints unasked", silence.check(t))
}

// The look at files finds what it is for.
func TestR26_theLookFindsWhatPrints(t *testing.T) {
	silence.finds(t, `package x
import ("fmt"; "os"; "log"; l "log/slog")
func f() { fmt.Println(1); fmt.Sprint(2); log.Print(3); l.Default(); println(4); l.New(nil); _ = os.Stderr; _ = os.Stdin }`,
		"fmt.Println", "log.Print", "log/slog.Default", "println", "os.Stderr")
}
