package browser

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/board"
	"github.com/lazo-ml/lazo/internal/runs"
	"github.com/lazo-ml/lazo/loop"
)

var screenshots = flag.String("screenshots", "", "folder for pictures of the page")

var patience = flag.Duration("patience", 2*time.Minute, "longest wait for a condition")

const token = "the-token-of-this-test"

type server struct {
	t        *testing.T
	store    *board.Store
	address  string
	http     *http.Server
	done     chan struct{}
	controls chan string
}

func serve(t *testing.T, store *board.Store, address string, reading bool) *server {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	s := &server{t: t, store: store, address: listener.Addr().String(), done: make(chan struct{})}
	s.http = board.NewServer(store.Handler(board.Access{Token: token, Reading: reading}))
	s.http.ErrorLog = log.New(io.Discard, "", 0)
	go func() { defer close(s.done); _ = s.http.Serve(listener) }()
	t.Cleanup(s.close)
	return s
}

func (s *server) close() {
	_ = s.http.Close()
	<-s.done
}

func open(t *testing.T, width int, dark bool) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(*patience))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page has an exception: %s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
		case *runtime.EventConsoleAPICalled:
			for _, a := range e.Args {
				t.Logf("console: %s", a.Value)
			}
		}
	})
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	require.NoError(t, chromedp.Run(ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		emulation.SetFocusEmulationEnabled(true), chromedp.EmulateViewport(int64(width), 900)))
	return ctx
}

func run(t *testing.T, ctx context.Context, actions ...chromedp.Action) {
	t.Helper()
	require.NoError(t, chromedp.Run(ctx, actions...))
}

// until waits until the expression is true.
func until(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	var got any
	err := chromedp.Run(ctx, chromedp.Poll(expression, &got, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(*patience)))
	if err != nil {
		var text string
		_ = chromedp.Run(ctx, chromedp.Evaluate(`document.body.innerText`, &text))
		require.NoError(t, err, "%s\nthe page:\n%s", expression, text)
	}
}

func value[T any](t *testing.T, ctx context.Context, expression string) (v T) {
	t.Helper()
	run(t, ctx, chromedp.Evaluate(expression, &v))
	return v
}

func picture(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	var png []byte
	run(t, ctx, chromedp.FullScreenshot(&png, 100))
	require.NoError(t, os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o600))
}

const points = 100_000

// five are five runs, of which one is running and one failed.
func five(store *board.Store) (all []*board.Run) {
	for i := range 5 {
		r := store.Add(fmt.Sprintf("lr=%g", []float64{.1, .03, .01, .003, .001}[i]))
		all = append(all, r)
		random := rand.New(rand.NewPCG(1, uint64(i)))
		noise := func() float64 { return random.NormFloat64() }
		slow := float64(i + 1)
		for s := 1; s <= points; s++ {
			x := float64(s) / points
			names := []string{"losses.loss", "metrics.accuracy", "metrics.gradient norm"}
			values := []float64{3*math.Exp(-8*x/slow) + .2 + .1*slow + .08*noise(), 1 - .9*math.Exp(-6*x/slow) - .03*slow + .02*noise(), math.Exp(.6*noise()) * slow}
			if s%1000 == 0 {
				names = append(names, "losses.val_loss", "metrics.val_accuracy")
				values = append(values, 3*math.Exp(-8*x/slow)+.3+.1*slow+.02*noise()+.1*x*slow, 1-.9*math.Exp(-6*x/slow)-.05-.03*slow+.004*noise())
			}
			at := loop.Elapsed{Steps: int64(s), Samples: int64(s) * 64, Epochs: int64(s / 2000), Time: time.Duration(s) * 20 * time.Millisecond}
			r.Row("rows", at, names, values)
			if s%100 == 0 {
				r.Row("process", at, []string{"resources.memory", "resources.CPU cores", "throughput.waiting for data"},
					[]float64{4e9 + 1e8*noise(), 3 + .3*noise(), math.Abs(.05 * noise())})
			}
		}
		r.Describe(func(info *board.Info) {
			info.Status = []string{"running", "ended", "failed", "interrupted", ""}[i]
			info.Why = []string{"", "until reached after 100000 steps", "failed at step 100000: losses.loss is NaN", "cancelled: signal interrupt", ""}[i]
			info.Settings = map[string]string{"learning_rate": fmt.Sprint([]float64{.1, .03, .01, .003, .001}[i]), "optimizer": "adam", "batch_size": "64"}
			if i == 0 {
				rate := .1
				info.Rate, info.Until, info.Progress = &rate, "200000 steps", .5
			}
		})
		r.Log("epoch 1 of 50\nepoch 2 of 50: loss 1.25\n")
	}
	return all
}

func TestPage_manyPoints(t *testing.T) {
	store := board.NewStore()
	all := five(store)
	s := serve(t, store, "127.0.0.1:0", false)
	for _, width := range []int{1400, 800, 400} {
		for _, dark := range []bool{false, true} {
			name := fmt.Sprintf("%d_%s", width, map[bool]string{true: "dark", false: "light"}[dark])
			t.Run(name, func(t *testing.T) {
				ctx := open(t, width, dark)
				run(t, ctx, chromedp.Navigate("http://"+s.address+"/"))
				until(t, ctx, `document.querySelectorAll("#runs li").length === 5`)
				until(t, ctx, `[...document.querySelectorAll(".chart")].filter(c => c.chart.visible).length > 0 && [...document.querySelectorAll(".chart")].every(c => !c.chart.visible || c.chart.plot && c.chart.plot.data.length > 5)`)
				picture(t, ctx, name)
				require.LessOrEqual(t, value[int](t, ctx, `document.documentElement.scrollWidth`), width, "the page must not be wider than the screen")
				require.Less(t, value[int](t, ctx, `document.querySelector('[data-chart="losses.loss"]').chart.plot.data[0].length`), 10_000)
				require.Equal(t, dark, value[bool](t, ctx, `parseInt(getComputedStyle(document.body).backgroundColor.slice(4)) < 128`))
			})
		}
	}
	t.Run("zoom", func(t *testing.T) {
		ctx := open(t, 1400, false)
		const chart = `document.querySelector('[data-chart="losses.loss"]').chart`
		run(t, ctx, chromedp.Navigate("http://"+s.address+"/"))
		until(t, ctx, chart+`?.plot?.data[0].length > 100`)
		require.Positive(t, value[float64](t, ctx, chart+`.cache.values().next().value.bucket`))
		var box struct{ X, Y, W, H float64 }
		run(t, ctx, chromedp.Evaluate(`(() => { const b = `+chart+`.plot.over.getBoundingClientRect(); return {X: b.x, Y: b.y, W: b.width, H: b.height}; })()`, &box))
		drag := func(from, to float64) {
			y := box.Y + box.H/2
			run(t, ctx, chromedp.MouseEvent("mouseMoved", box.X+from*box.W, y), chromedp.MouseEvent("mousePressed", box.X+from*box.W, y, chromedp.ButtonLeft, chromedp.ClickCount(1)),
				chromedp.MouseEvent("mouseMoved", box.X+(from+to)/2*box.W, y, chromedp.ButtonLeft), chromedp.MouseEvent("mouseMoved", box.X+to*box.W, y, chromedp.ButtonLeft),
				chromedp.MouseEvent("mouseReleased", box.X+to*box.W, y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
		}
		drag(.5, .6)
		until(t, ctx, `!document.getElementById("reset").hidden`)
		drag(.5, .53)
		until(t, ctx, chart+`.cache.values().next().value.bucket === 0`)
		picture(t, ctx, "zoom")
		shown := value[[]float64](t, ctx, chart+`.plot.data[0].filter((x, i, all) => i < 2)`)
		require.Equal(t, 1.0, shown[1]-shown[0], "each step is shown")
		run(t, ctx, chromedp.Click("#reset"))
		until(t, ctx, chart+`.cache.values().next().value.bucket > 0`)

		// A chart has the keyboard too.
		run(t, ctx, chromedp.Evaluate(chart+`.plotBox.focus()`, nil), chromedp.KeyEvent("+"))
		until(t, ctx, `!document.getElementById("reset").hidden`)
		run(t, ctx, chromedp.KeyEvent("0"))
		until(t, ctx, `document.getElementById("reset").hidden && [...document.querySelectorAll(".chart")].every(c => !c.chart.visible || c.chart.wants().length === 0)`)

		// The page asks for added points alone.
		run(t, ctx, chromedp.Evaluate(`(() => { window.answers = []; const before = window.fetch; window.fetch = async (...a) => {
			const answer = await before(...a);
			if (String(a[0]).startsWith("series")) window.answers.push((await answer.clone().text()).length);
			return answer;
		}; return true; })()`, nil))
		all[0].Row("rows", loop.Elapsed{Steps: points + 1, Time: points * 20 * time.Millisecond}, []string{"losses.loss"}, []float64{2.5})
		until(t, ctx, `window.answers.length > 0 && `+chart+`.cache.get("1 losses.loss").step === 100001`)
		require.Less(t, value[int](t, ctx, `window.answers[0]`), 1000)
	})
	t.Run("time and log", func(t *testing.T) {
		ctx := open(t, 1400, false)
		run(t, ctx, chromedp.Navigate("http://"+s.address+"/"))
		until(t, ctx, `document.querySelector('[data-chart="losses.loss"]')?.chart.plot?.data[0].length > 100`)
		run(t, ctx, chromedp.Click(`input[value=time]`), chromedp.Click(`#log`))
		until(t, ctx, `document.querySelector('[data-chart="losses.loss"]').chart.plot.data[0].at(-1) < 3000 && document.querySelector('[data-chart="losses.loss"]').chart.plot.scales.y.distr === 3`)
		run(t, ctx, chromedp.SendKeys("#filter", "grad"))
		until(t, ctx, `document.querySelectorAll(".chart").length === 1`)
		picture(t, ctx, "time")
	})
}

func TestPage_keyboard(t *testing.T) {
	store := board.NewStore()
	five(store)
	s := serve(t, store, "127.0.0.1:0", false)
	ctx := open(t, 1400, false)
	run(t, ctx, chromedp.Navigate("http://"+s.address+"/"))
	until(t, ctx, `document.querySelectorAll("#runs li").length === 5`)
	var order []string
	for range 8 {
		run(t, ctx, chromedp.KeyEvent(kb.Tab))
		order = append(order, value[string](t, ctx, `document.activeElement.id || document.activeElement.value || document.activeElement.dataset.run || document.activeElement.tagName`))
	}
	require.Equal(t, []string{"step", "log", "filter", "5"}, order[:4], "the order of tabs")
	run(t, ctx, chromedp.Focus(`#runs [aria-current=true]`), chromedp.KeyEvent(kb.ArrowUp))
	until(t, ctx, `document.activeElement.dataset.run === "4" && document.querySelector("#details h2").textContent === "lr=0.003"`)
	run(t, ctx, chromedp.KeyEvent(kb.Home))
	until(t, ctx, `document.activeElement.dataset.run === "1"`)
	run(t, ctx, chromedp.KeyEvent(" "))
	until(t, ctx, `document.activeElement.getAttribute("aria-selected") === "false"`)
	until(t, ctx, `document.querySelector('[data-chart="losses.loss"]').chart.curves.length === 8`)
	run(t, ctx, chromedp.KeyEvent(" "))
	until(t, ctx, `document.querySelector('[data-chart="losses.loss"]').chart.curves.length === 10`)
}

// The server ends, and another one begins at its address, with other numbers of the runs.
func TestPage_reconnects(t *testing.T) {
	store := board.NewStore()
	store.Add("first").Row("rows", loop.Elapsed{Steps: 1}, []string{"losses.loss"}, []float64{1})
	store.Add("second").Row("rows", loop.Elapsed{Steps: 1}, []string{"losses.loss"}, []float64{1})
	s := serve(t, store, "127.0.0.1:0", false)
	ctx := open(t, 1400, false)
	run(t, ctx, chromedp.Navigate("http://"+s.address+"/"))
	until(t, ctx, `document.querySelectorAll("#runs li").length === 2 && document.getElementById("connection").className === "on"`)
	run(t, ctx, chromedp.Click(`#runs li:nth-child(1) .swatch`)) // hides it, and selects it
	until(t, ctx, `document.querySelector("#runs li").getAttribute("aria-selected") === "false"`)
	s.close()
	until(t, ctx, `document.getElementById("connection").className === "off"`)
	again := board.NewStore()
	again.Add("new")
	r := again.Add("first")
	for i := range 50 {
		r.Row("rows", loop.Elapsed{Steps: int64(i + 1)}, []string{"losses.loss"}, []float64{float64(i)})
	}
	serve(t, again, s.address, false)
	until(t, ctx, `document.getElementById("connection").className === "on" && document.querySelectorAll("#runs li").length === 2`)
	until(t, ctx, `document.querySelector("#details h2").textContent === "first"`)
	require.Equal(t, []string{"true", "false"}, value[[]string](t, ctx, `[...document.querySelectorAll("#runs li")].map(l => l.getAttribute("aria-selected"))`))
	run(t, ctx, chromedp.Click(`#runs li:nth-child(2) .swatch`))
	until(t, ctx, `document.querySelector('[data-chart="losses.loss"]')?.chart.plot?.data[0].length === 50`)
}

func TestPage_controls(t *testing.T) {
	store := board.NewStore()
	rate := .1
	asked := make(chan string, 10)
	r := store.Add("digits")
	r.Row("rows", loop.Elapsed{Steps: 1}, []string{"losses.loss"}, []float64{1})
	r.Describe(func(info *board.Info) {
		info.Status, info.Rate, info.Actions = "running", &rate, []string{"stop", "pause", "save", "rate"}
		info.Control = func(action string, value float64) error {
			asked <- fmt.Sprint(action, " ", value)
			if value > 1 {
				return fmt.Errorf("the rate is too high")
			}
			return nil
		}
	})
	r.Show(board.Sample{Step: 1, Name: "outputs.text", Text: "<b>a text</b>"})
	s := serve(t, store, "127.0.0.1:0", false)
	ctx := open(t, 1400, false)
	click := func(action string) { run(t, ctx, chromedp.Click(`[data-action=`+action+`]`, chromedp.NodeVisible)) }
	run(t, ctx, chromedp.Navigate("http://"+s.address+"/"))
	until(t, ctx, `document.querySelector("[data-action=save]")`)
	click("save")
	until(t, ctx, `document.querySelector("#controls .problem")?.textContent.includes("token") && !document.getElementById("login").hidden`)
	require.Empty(t, asked)

	run(t, ctx, chromedp.Navigate("about:blank"), chromedp.Navigate("http://"+s.address+"/#token="+token))
	until(t, ctx, `document.querySelector("[data-action=save]")`)
	require.Empty(t, value[string](t, ctx, `location.hash`), "the token leaves the address bar")
	click("save")
	require.Equal(t, "save 0", <-asked)
	click("stop")
	until(t, ctx, `document.querySelector("[data-action=stop]").textContent === "Really stop?"`)
	require.Empty(t, asked, "one click does not stop a training")
	click("stop")
	require.Equal(t, "stop 0", <-asked)
	set := func(text string) {
		run(t, ctx, chromedp.Evaluate(`document.getElementById("rate").value = ""`, nil), chromedp.SendKeys("#rate", text+"\n", chromedp.ByID))
	}
	set("3e-4")
	require.Equal(t, "rate 0.0003", <-asked)
	set("2")
	require.Equal(t, "rate 2", <-asked)
	until(t, ctx, `document.querySelector("#controls .problem")?.textContent.includes("too high")`)
	set("fast")
	until(t, ctx, `document.querySelector("#controls .problem")?.textContent.includes("expected a number")`)
	require.Empty(t, asked)
	run(t, ctx, chromedp.Click("#samples-box summary"))
	until(t, ctx, `document.querySelector("#samples pre")?.textContent === "<b>a text</b>"`)
	picture(t, ctx, "controls")
	require.True(t, strings.HasPrefix(value[string](t, ctx, `document.title`), "▶ 1"))
}

func TestPage_search(t *testing.T) {
	store := board.NewStore()
	random := rand.New(rand.NewPCG(1, 2))
	of := runs.Search{Method: "TPE", Entry: "val_loss", Best: "lowest", Names: []string{"activation", "batch", "dropout", "rate", "units"},
		Importance: []runs.Importance{{Name: "rate", Share: .71}, {Name: "units", Share: .2}, {Name: "activation", Share: .05}, {Name: "dropout"}, {Name: "batch"}}}
	for i := range 60 {
		rate, units := math.Exp(math.Log(1e-4)+random.Float64()*math.Log(1e3)), 16<<random.IntN(5)
		value := math.Pow(math.Log10(rate)+2.5, 2)*.2 + 4/float64(units) + .02*random.Float64()
		of.Trials = append(of.Trials, runs.Trial{Number: i, Value: &value, Epochs: 10, Ended: true, Parameters: map[string]string{"rate": fmt.Sprint(rate), "units": fmt.Sprint(units),
			"activation": []string{"relu", "tanh", "gelu"}[random.IntN(3)], "dropout": fmt.Sprint(random.Float64() / 2), "batch": "32"}})
	}
	slices.SortFunc(of.Trials, func(a, b runs.Trial) int { return cmp.Compare(*a.Value, *b.Value) })
	of.Trials = append(of.Trials, runs.Trial{Number: 60, Ended: true, Failed: "loss is <NaN>\n  more", Parameters: of.Trials[0].Parameters}, runs.Trial{Number: 61, Parameters: of.Trials[1].Parameters})
	store.Add("found (search)").Describe(func(i *board.Info) { i.Search = &of })
	s := serve(t, store, "127.0.0.1:0", false)
	for _, width := range []int{1400, 400} {
		ctx := open(t, width, width == 400)
		run(t, ctx, chromedp.Navigate("http://"+s.address+"/"))
		until(t, ctx, `document.querySelectorAll(".search tbody tr").length === 62`)
		const painted = `(() => { const c = document.querySelector(".search canvas"); return c.getContext("2d").getImageData(0, 0, c.width, c.height).data.reduce((n, v, i) => n + (i % 4 === 3 && v > 0 ? 1 : 0), 0); })()`
		before := value[int](t, ctx, painted)
		require.Greater(t, before, 1000)
		picture(t, ctx, fmt.Sprintf("search_%d", width))
		require.LessOrEqual(t, value[int](t, ctx, `document.documentElement.scrollWidth`), width)
		run(t, ctx, chromedp.Evaluate(`document.querySelector(".search tbody tr").focus()`, nil))
		until(t, ctx, `document.querySelector(".search tr.mark")`)
		require.Greater(t, value[int](t, ctx, painted), before, "the trial of the row is marked")
		require.Contains(t, value[string](t, ctx, `document.querySelector(".search tbody").innerText`), "loss is <NaN>")
	}
}

func TestPage_asksForTheToken(t *testing.T) {
	store := board.NewStore()
	store.Add("digits")
	s := serve(t, store, "127.0.0.1:0", true)
	ctx := open(t, 400, true)
	run(t, ctx, chromedp.Navigate("http://"+s.address+"/"))
	until(t, ctx, `!document.getElementById("login").hidden`)
	require.Zero(t, value[int](t, ctx, `document.querySelectorAll("#runs li").length`))
	run(t, ctx, chromedp.SendKeys("#token", "wrong\n", chromedp.ByID))
	until(t, ctx, `document.getElementById("login-problem").textContent.includes("wrong")`)
	picture(t, ctx, "token")
	run(t, ctx, chromedp.Evaluate(`document.getElementById("token").value = ""`, nil), chromedp.SendKeys("#token", token+"\n", chromedp.ByID))
	until(t, ctx, `document.querySelectorAll("#runs li").length === 1 && document.getElementById("login").hidden`)
}
