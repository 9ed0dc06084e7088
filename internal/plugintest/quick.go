package plugintest

import "os"

// CompileQuickly has this process compile programs in a third of the time, which then run at half of the speed: without
// XLA's newer code for fused operations and LLVM's optimisations. A package whose tests are about what Go does around
// programs, or compare within a tolerance, calls it in an init. Nightly compiles as users do, and so do other packages.
// XLA_FLAGS that are set stay as they are.
func CompileQuickly() {
	if !nightly {
		compileQuickly()
	}
}

// The run with the race detector compiles quickly everywhere.
func init() {
	if os.Getenv("LAZO_TEST_QUICK") != "" {
		compileQuickly()
	}
}

func compileQuickly() {
	const flags = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=2 --xla_backend_optimization_level=0"
	if _, set := os.LookupEnv("XLA_FLAGS"); set {
		return
	}
	if err := os.Setenv("XLA_FLAGS", flags); err != nil {
		panic(err)
	}
}
