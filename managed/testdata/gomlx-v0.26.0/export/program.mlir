module @train_step {
  func.func public @main(%p0: tensor<4x1xf32>, %p1: tensor<4x1xf32>, %p2: tensor<1xf32> {tf.aliasing_output = 1 : i32}, %p3: tensor<1xf32> {tf.aliasing_output = 2 : i32}, %p4: tensor<1xf32> {tf.aliasing_output = 3 : i32}, %p5: tensor<1xf32> {tf.aliasing_output = 4 : i32}, %p6: tensor<1xf32> {tf.aliasing_output = 5 : i32}, %p7: tensor<1x2x4xf32> {tf.aliasing_output = 6 : i32}, %p8: tensor<2x4xf32> {tf.aliasing_output = 7 : i32}, %p9: tensor<3xui64> {tf.aliasing_output = 0 : i32}, %p10: tensor<8x1xf32> {tf.aliasing_output = 8 : i32}, %p11: tensor<1xf32> {tf.aliasing_output = 9 : i32}, %p12: tensor<i64> {tf.aliasing_output = 10 : i32}, %p13: tensor<f64> {tf.aliasing_output = 11 : i32}, %p14: tensor<f64> {tf.aliasing_output = 12 : i32}, %p15: tensor<f32>, %p16: tensor<i64> {tf.aliasing_output = 13 : i32}, %p17: tensor<1xf32> {tf.aliasing_output = 14 : i32}, %p18: tensor<1xf32> {tf.aliasing_output = 15 : i32}, %p19: tensor<1xf32> {tf.aliasing_output = 16 : i32}, %p20: tensor<1xf32> {tf.aliasing_output = 17 : i32}, %p21: tensor<1x2x4xf32> {tf.aliasing_output = 18 : i32}, %p22: tensor<1x2x4xf32> {tf.aliasing_output = 19 : i32}, %p23: tensor<2x4xf32> {tf.aliasing_output = 20 : i32}, %p24: tensor<2x4xf32> {tf.aliasing_output = 21 : i32}, %p25: tensor<8x1xf32> {tf.aliasing_output = 22 : i32}, %p26: tensor<8x1xf32> {tf.aliasing_output = 23 : i32}, %p27: tensor<1xf32> {tf.aliasing_output = 24 : i32}, %p28: tensor<1xf32> {tf.aliasing_output = 25 : i32}) -> (tensor<3xui64>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1x2x4xf32>, tensor<2x4xf32>, tensor<8x1xf32>, tensor<1xf32>, tensor<i64>, tensor<f64>, tensor<f64>, tensor<i64>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<3xf32>) {
    %0, %1, %2 = "stablehlo.batch_norm_training"(%p0, %p2, %p3) {
      epsilon = 0.0010000000474974513 : f32,
      feature_index = 1 : i64
    } : (tensor<4x1xf32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<4x1xf32>, tensor<1xf32>, tensor<1xf32>)
    %3 = "stablehlo.constant"() { value = dense<0.9900000095367432> : tensor<f32> } : () -> tensor<f32>
    %4 = "stablehlo.constant"() { value = dense<1.0> : tensor<f32> } : () -> tensor<f32>
    %5 = "stablehlo.broadcast_in_dim"(%4) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %6 = "stablehlo.add"(%5, %p6) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %7 = "stablehlo.broadcast_in_dim"(%4) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %8 = "stablehlo.divide"(%7, %6) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %9 = "stablehlo.broadcast_in_dim"(%4) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %10 = "stablehlo.subtract"(%9, %8) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %11 = "stablehlo.broadcast_in_dim"(%3) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %12 = "stablehlo.minimum"(%11, %10) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %13 = "stablehlo.multiply"(%12, %p4) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %14 = "stablehlo.broadcast_in_dim"(%4) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %15 = "stablehlo.subtract"(%14, %12) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %16 = "stablehlo.multiply"(%15, %1) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %17 = "stablehlo.add"(%13, %16) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %18 = "stablehlo.multiply"(%12, %p5) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %19 = "stablehlo.broadcast_in_dim"(%4) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %20 = "stablehlo.subtract"(%19, %12) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %21 = "stablehlo.multiply"(%20, %2) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %22 = "stablehlo.add"(%18, %21) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %23 = "stablehlo.dot_general"(%0, %p7) {
      dot_dimension_numbers = #stablehlo.dot<
  lhs_batching_dimensions = [],
  rhs_batching_dimensions = [],
  lhs_contracting_dimensions = [1],
  rhs_contracting_dimensions = [0]
>,
      precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]
    } : (tensor<4x1xf32>, tensor<1x2x4xf32>) -> tensor<4x2x4xf32>
    %24 = "stablehlo.reshape"(%p8) : (tensor<2x4xf32>) -> tensor<1x2x4xf32>
    %25 = "stablehlo.broadcast_in_dim"(%24) { broadcast_dimensions = array<i64: 0, 1, 2> } : (tensor<1x2x4xf32>) -> tensor<4x2x4xf32>
    %26 = "stablehlo.add"(%23, %25) : (tensor<4x2x4xf32>, tensor<4x2x4xf32>) -> tensor<4x2x4xf32>
    %27 = "stablehlo.tanh"(%26) : (tensor<4x2x4xf32>) -> tensor<4x2x4xf32>
    %28 = "stablehlo.reshape"(%27) : (tensor<4x2x4xf32>) -> tensor<4x8xf32>
    %29 = "stablehlo.constant"() { value = dense<0.10000000149011612> : tensor<f32> } : () -> tensor<f32>
    %30, %31 = "stablehlo.rng_bit_generator"(%p9) { rng_algorithm = #stablehlo<rng_algorithm PHILOX> } : (tensor<3xui64>) -> (tensor<3xui64>, tensor<4x8xui32>)
    %32 = "stablehlo.convert"(%31) : (tensor<4x8xui32>) -> tensor<4x8xf32>
    %33 = "stablehlo.constant"() { value = dense<2.3283064365386963e-10> : tensor<f32> } : () -> tensor<f32>
    %34 = "stablehlo.broadcast_in_dim"(%33) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<4x8xf32>
    %35 = "stablehlo.multiply"(%32, %34) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %36 = "stablehlo.abs"(%35) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %37 = "stablehlo.constant"() { value = dense<0.9999999403953552> : tensor<f32> } : () -> tensor<f32>
    %38 = "stablehlo.broadcast_in_dim"(%37) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<4x8xf32>
    %39 = "stablehlo.minimum"(%36, %38) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %40 = "stablehlo.broadcast_in_dim"(%29) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<4x8xf32>
    %41 = "stablehlo.compare"(%39, %40) {
      compare_type = #stablehlo<comparison_type FLOAT>,
      comparison_direction = #stablehlo<comparison_direction LE>
    } : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %42 = "stablehlo.constant"() { value = dense<0.0> : tensor<f32> } : () -> tensor<f32>
    %43 = "stablehlo.broadcast_in_dim"(%42) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<4x8xf32>
    %44 = "stablehlo.select"(%41, %43, %28) : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %45 = "stablehlo.subtract"(%4, %29) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %46 = "stablehlo.broadcast_in_dim"(%45) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<4x8xf32>
    %47 = "stablehlo.divide"(%44, %46) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %48 = "stablehlo.dot_general"(%47, %p10) {
      dot_dimension_numbers = #stablehlo.dot<
  lhs_batching_dimensions = [],
  rhs_batching_dimensions = [],
  lhs_contracting_dimensions = [1],
  rhs_contracting_dimensions = [0]
>,
      precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]
    } : (tensor<4x8xf32>, tensor<8x1xf32>) -> tensor<4x1xf32>
    %49 = "stablehlo.reshape"(%p11) : (tensor<1xf32>) -> tensor<1x1xf32>
    %50 = "stablehlo.broadcast_in_dim"(%49) { broadcast_dimensions = array<i64: 0, 1> } : (tensor<1x1xf32>) -> tensor<4x1xf32>
    %51 = "stablehlo.add"(%48, %50) : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
    %52 = "stablehlo.subtract"(%51, %p1) : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
    %53 = "stablehlo.multiply"(%52, %52) : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
    %54 = "stablehlo.constant"() { value = dense<0.0> : tensor<f32> } : () -> tensor<f32>
    %56 = "stablehlo.reduce"(%53, %54) ({
      ^reductionFn(%arg0: tensor<f32>, %arg1: tensor<f32>) :
          %55 = "stablehlo.add"(%arg0, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%55) : (tensor<f32>) -> ()
    }) { dimensions = array<i64: 0, 1> } : (tensor<4x1xf32>, tensor<f32>) -> tensor<f32>
    %57 = "stablehlo.constant"() { value = dense<0.25> : tensor<f32> } : () -> tensor<f32>
    %58 = "stablehlo.multiply"(%56, %57) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %59 = "stablehlo.convert"(%p12) : (tensor<i64>) -> tensor<f32>
    %60 = "stablehlo.constant"() { value = dense<1.0> : tensor<f64> } : () -> tensor<f64>
    %61 = "stablehlo.broadcast_in_dim"(%60) { broadcast_dimensions = array<i64> } : (tensor<f64>) -> tensor<4x1xf64>
    %62 = "stablehlo.convert"(%51) : (tensor<4x1xf32>) -> tensor<4x1xf64>
    %63 = "stablehlo.constant"() { value = dense<0.0> : tensor<f64> } : () -> tensor<f64>
    %64 = "stablehlo.broadcast_in_dim"(%63) { broadcast_dimensions = array<i64> } : (tensor<f64>) -> tensor<4x1xf64>
    %65 = "stablehlo.compare"(%61, %64) {
      compare_type = #stablehlo<comparison_type FLOAT>,
      comparison_direction = #stablehlo<comparison_direction NE>
    } : (tensor<4x1xf64>, tensor<4x1xf64>) -> tensor<4x1xi1>
    %66 = "stablehlo.broadcast_in_dim"(%63) { broadcast_dimensions = array<i64> } : (tensor<f64>) -> tensor<4x1xf64>
    %67 = "stablehlo.select"(%65, %62, %66) : (tensor<4x1xi1>, tensor<4x1xf64>, tensor<4x1xf64>) -> tensor<4x1xf64>
    %68 = "stablehlo.multiply"(%61, %67) : (tensor<4x1xf64>, tensor<4x1xf64>) -> tensor<4x1xf64>
    %69 = "stablehlo.constant"() { value = dense<0.0> : tensor<f64> } : () -> tensor<f64>
    %71 = "stablehlo.reduce"(%68, %69) ({
      ^reductionFn(%arg2: tensor<f64>, %arg3: tensor<f64>) :
          %70 = "stablehlo.add"(%arg2, %arg3) : (tensor<f64>, tensor<f64>) -> tensor<f64>
          "stablehlo.return"(%70) : (tensor<f64>) -> ()
    }) { dimensions = array<i64: 0, 1> } : (tensor<4x1xf64>, tensor<f64>) -> tensor<f64>
    %72 = "stablehlo.constant"() { value = dense<0.0> : tensor<f64> } : () -> tensor<f64>
    %74 = "stablehlo.reduce"(%61, %72) ({
      ^reductionFn(%arg4: tensor<f64>, %arg5: tensor<f64>) :
          %73 = "stablehlo.add"(%arg4, %arg5) : (tensor<f64>, tensor<f64>) -> tensor<f64>
          "stablehlo.return"(%73) : (tensor<f64>) -> ()
    }) { dimensions = array<i64: 0, 1> } : (tensor<4x1xf64>, tensor<f64>) -> tensor<f64>
    %75 = "stablehlo.add"(%p13, %71) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %76 = "stablehlo.add"(%p14, %74) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %77 = "stablehlo.divide"(%75, %76) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %78 = "stablehlo.broadcast_in_dim"(%4) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<f32>
    %79 = "stablehlo.multiply"(%78, %57) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %80 = "stablehlo.reshape"(%79) : (tensor<f32>) -> tensor<1x1xf32>
    %81 = "stablehlo.broadcast_in_dim"(%80) { broadcast_dimensions = array<i64: 0, 1> } : (tensor<1x1xf32>) -> tensor<4x1xf32>
    %82 = "stablehlo.constant"() { value = dense<2.0> : tensor<f32> } : () -> tensor<f32>
    %83 = "stablehlo.broadcast_in_dim"(%82) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<4x1xf32>
    %84 = "stablehlo.multiply"(%52, %83) : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
    %85 = "stablehlo.multiply"(%81, %84) : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
    %86 = "stablehlo.constant"() { value = dense<0.0> : tensor<f32> } : () -> tensor<f32>
    %88 = "stablehlo.reduce"(%85, %86) ({
      ^reductionFn(%arg6: tensor<f32>, %arg7: tensor<f32>) :
          %87 = "stablehlo.add"(%arg6, %arg7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%87) : (tensor<f32>) -> ()
    }) { dimensions = array<i64: 0> } : (tensor<4x1xf32>, tensor<f32>) -> tensor<1xf32>
    %89 = "stablehlo.reshape"(%88) : (tensor<1xf32>) -> tensor<1x1xf32>
    %90 = "stablehlo.reshape"(%89) : (tensor<1x1xf32>) -> tensor<1xf32>
    %91 = "stablehlo.dot_general"(%85, %p10) {
      dot_dimension_numbers = #stablehlo.dot<
  lhs_batching_dimensions = [],
  rhs_batching_dimensions = [],
  lhs_contracting_dimensions = [1],
  rhs_contracting_dimensions = [1]
>,
      precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]
    } : (tensor<4x1xf32>, tensor<8x1xf32>) -> tensor<4x8xf32>
    %92 = "stablehlo.dot_general"(%47, %85) {
      dot_dimension_numbers = #stablehlo.dot<
  lhs_batching_dimensions = [],
  rhs_batching_dimensions = [],
  lhs_contracting_dimensions = [0],
  rhs_contracting_dimensions = [0]
>,
      precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]
    } : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<8x1xf32>
    %93 = "stablehlo.broadcast_in_dim"(%45) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<4x8xf32>
    %94 = "stablehlo.divide"(%91, %93) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %95 = "stablehlo.broadcast_in_dim"(%42) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<4x8xf32>
    %96 = "stablehlo.select"(%41, %95, %94) : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %97 = "stablehlo.reshape"(%96) : (tensor<4x8xf32>) -> tensor<4x2x4xf32>
    %98 = "stablehlo.multiply"(%27, %27) : (tensor<4x2x4xf32>, tensor<4x2x4xf32>) -> tensor<4x2x4xf32>
    %99 = "stablehlo.broadcast_in_dim"(%4) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<4x2x4xf32>
    %100 = "stablehlo.subtract"(%99, %98) : (tensor<4x2x4xf32>, tensor<4x2x4xf32>) -> tensor<4x2x4xf32>
    %101 = "stablehlo.multiply"(%97, %100) : (tensor<4x2x4xf32>, tensor<4x2x4xf32>) -> tensor<4x2x4xf32>
    %102 = "stablehlo.constant"() { value = dense<0.0> : tensor<f32> } : () -> tensor<f32>
    %104 = "stablehlo.reduce"(%101, %102) ({
      ^reductionFn(%arg8: tensor<f32>, %arg9: tensor<f32>) :
          %103 = "stablehlo.add"(%arg8, %arg9) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%103) : (tensor<f32>) -> ()
    }) { dimensions = array<i64: 0> } : (tensor<4x2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %105 = "stablehlo.reshape"(%104) : (tensor<2x4xf32>) -> tensor<1x2x4xf32>
    %106 = "stablehlo.reshape"(%105) : (tensor<1x2x4xf32>) -> tensor<2x4xf32>
    %107 = "stablehlo.dot_general"(%101, %p7) {
      dot_dimension_numbers = #stablehlo.dot<
  lhs_batching_dimensions = [],
  rhs_batching_dimensions = [],
  lhs_contracting_dimensions = [1, 2],
  rhs_contracting_dimensions = [1, 2]
>,
      precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]
    } : (tensor<4x2x4xf32>, tensor<1x2x4xf32>) -> tensor<4x1xf32>
    %108 = "stablehlo.dot_general"(%0, %101) {
      dot_dimension_numbers = #stablehlo.dot<
  lhs_batching_dimensions = [],
  rhs_batching_dimensions = [],
  lhs_contracting_dimensions = [0],
  rhs_contracting_dimensions = [0]
>,
      precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]
    } : (tensor<4x1xf32>, tensor<4x2x4xf32>) -> tensor<1x2x4xf32>
    %109 = "stablehlo.broadcast_in_dim"(%42) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %110 = "stablehlo.broadcast_in_dim"(%42) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %111, %112, %113 = "stablehlo.batch_norm_grad"(%p0, %p2, %1, %2, %107) {
      epsilon = 0.0010000000474974513 : f32,
      feature_index = 1 : i64
    } : (tensor<4x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<4x1xf32>) -> (tensor<4x1xf32>, tensor<1xf32>, tensor<1xf32>)
    %114 = "stablehlo.constant"() { value = dense<1> : tensor<i64> } : () -> tensor<i64>
    %115 = "stablehlo.broadcast_in_dim"(%114) { broadcast_dimensions = array<i64> } : (tensor<i64>) -> tensor<i64>
    %116 = "stablehlo.add"(%p12, %115) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %117 = "stablehlo.convert"(%116) : (tensor<i64>) -> tensor<f32>
    %118 = "stablehlo.broadcast_in_dim"(%114) { broadcast_dimensions = array<i64> } : (tensor<i64>) -> tensor<i64>
    %119 = "stablehlo.add"(%p16, %118) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %120 = "stablehlo.convert"(%119) : (tensor<i64>) -> tensor<f32>
    %121 = "stablehlo.constant"() { value = dense<0.8999999761581421> : tensor<f32> } : () -> tensor<f32>
    %122 = "stablehlo.power"(%121, %120) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %123 = "stablehlo.subtract"(%4, %122) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %124 = "stablehlo.divide"(%4, %123) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %125 = "stablehlo.constant"() { value = dense<0.9990000128746033> : tensor<f32> } : () -> tensor<f32>
    %126 = "stablehlo.power"(%125, %120) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %127 = "stablehlo.subtract"(%4, %126) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %128 = "stablehlo.divide"(%4, %127) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %129 = "stablehlo.constant"() { value = dense<1.0000000116860974e-07> : tensor<f32> } : () -> tensor<f32>
    %130 = "stablehlo.broadcast_in_dim"(%121) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %131 = "stablehlo.multiply"(%130, %p17) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %132 = "stablehlo.subtract"(%4, %121) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %133 = "stablehlo.broadcast_in_dim"(%132) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %134 = "stablehlo.multiply"(%133, %112) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %135 = "stablehlo.add"(%131, %134) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %136 = "stablehlo.broadcast_in_dim"(%124) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %137 = "stablehlo.multiply"(%135, %136) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %138 = "stablehlo.broadcast_in_dim"(%125) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %139 = "stablehlo.multiply"(%138, %p18) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %140 = "stablehlo.subtract"(%4, %125) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %141 = "stablehlo.multiply"(%112, %112) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %142 = "stablehlo.broadcast_in_dim"(%140) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %143 = "stablehlo.multiply"(%142, %141) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %144 = "stablehlo.add"(%139, %143) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %145 = "stablehlo.broadcast_in_dim"(%128) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %146 = "stablehlo.multiply"(%144, %145) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %147 = "stablehlo.sqrt"(%146) : (tensor<1xf32>) -> tensor<1xf32>
    %148 = "stablehlo.broadcast_in_dim"(%129) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %149 = "stablehlo.add"(%147, %148) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %150 = "stablehlo.broadcast_in_dim"(%p15) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %151 = "stablehlo.multiply"(%150, %137) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %152 = "stablehlo.divide"(%151, %149) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %153 = "stablehlo.subtract"(%p2, %152) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %154 = "stablehlo.broadcast_in_dim"(%121) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %155 = "stablehlo.multiply"(%154, %p19) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %156 = "stablehlo.subtract"(%4, %121) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %157 = "stablehlo.broadcast_in_dim"(%156) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %158 = "stablehlo.multiply"(%157, %113) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %159 = "stablehlo.add"(%155, %158) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %160 = "stablehlo.broadcast_in_dim"(%124) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %161 = "stablehlo.multiply"(%159, %160) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %162 = "stablehlo.broadcast_in_dim"(%125) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %163 = "stablehlo.multiply"(%162, %p20) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %164 = "stablehlo.subtract"(%4, %125) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %165 = "stablehlo.multiply"(%113, %113) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %166 = "stablehlo.broadcast_in_dim"(%164) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %167 = "stablehlo.multiply"(%166, %165) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %168 = "stablehlo.add"(%163, %167) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %169 = "stablehlo.broadcast_in_dim"(%128) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %170 = "stablehlo.multiply"(%168, %169) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %171 = "stablehlo.sqrt"(%170) : (tensor<1xf32>) -> tensor<1xf32>
    %172 = "stablehlo.broadcast_in_dim"(%129) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %173 = "stablehlo.add"(%171, %172) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %174 = "stablehlo.broadcast_in_dim"(%p15) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %175 = "stablehlo.multiply"(%174, %161) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %176 = "stablehlo.divide"(%175, %173) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %177 = "stablehlo.subtract"(%p3, %176) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %178 = "stablehlo.broadcast_in_dim"(%121) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1x2x4xf32>
    %179 = "stablehlo.multiply"(%178, %p21) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %180 = "stablehlo.subtract"(%4, %121) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %181 = "stablehlo.broadcast_in_dim"(%180) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1x2x4xf32>
    %182 = "stablehlo.multiply"(%181, %108) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %183 = "stablehlo.add"(%179, %182) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %184 = "stablehlo.broadcast_in_dim"(%124) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1x2x4xf32>
    %185 = "stablehlo.multiply"(%183, %184) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %186 = "stablehlo.broadcast_in_dim"(%125) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1x2x4xf32>
    %187 = "stablehlo.multiply"(%186, %p22) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %188 = "stablehlo.subtract"(%4, %125) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %189 = "stablehlo.multiply"(%108, %108) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %190 = "stablehlo.broadcast_in_dim"(%188) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1x2x4xf32>
    %191 = "stablehlo.multiply"(%190, %189) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %192 = "stablehlo.add"(%187, %191) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %193 = "stablehlo.broadcast_in_dim"(%128) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1x2x4xf32>
    %194 = "stablehlo.multiply"(%192, %193) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %195 = "stablehlo.sqrt"(%194) : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %196 = "stablehlo.broadcast_in_dim"(%129) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1x2x4xf32>
    %197 = "stablehlo.add"(%195, %196) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %198 = "stablehlo.broadcast_in_dim"(%p15) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1x2x4xf32>
    %199 = "stablehlo.multiply"(%198, %185) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %200 = "stablehlo.divide"(%199, %197) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %201 = "stablehlo.subtract"(%p7, %200) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %202 = "stablehlo.broadcast_in_dim"(%121) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<2x4xf32>
    %203 = "stablehlo.multiply"(%202, %p23) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %204 = "stablehlo.subtract"(%4, %121) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %205 = "stablehlo.broadcast_in_dim"(%204) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<2x4xf32>
    %206 = "stablehlo.multiply"(%205, %106) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %207 = "stablehlo.add"(%203, %206) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %208 = "stablehlo.broadcast_in_dim"(%124) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<2x4xf32>
    %209 = "stablehlo.multiply"(%207, %208) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %210 = "stablehlo.broadcast_in_dim"(%125) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<2x4xf32>
    %211 = "stablehlo.multiply"(%210, %p24) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %212 = "stablehlo.subtract"(%4, %125) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %213 = "stablehlo.multiply"(%106, %106) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %214 = "stablehlo.broadcast_in_dim"(%212) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<2x4xf32>
    %215 = "stablehlo.multiply"(%214, %213) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %216 = "stablehlo.add"(%211, %215) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %217 = "stablehlo.broadcast_in_dim"(%128) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<2x4xf32>
    %218 = "stablehlo.multiply"(%216, %217) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %219 = "stablehlo.sqrt"(%218) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %220 = "stablehlo.broadcast_in_dim"(%129) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<2x4xf32>
    %221 = "stablehlo.add"(%219, %220) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %222 = "stablehlo.broadcast_in_dim"(%p15) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<2x4xf32>
    %223 = "stablehlo.multiply"(%222, %209) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %224 = "stablehlo.divide"(%223, %221) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %225 = "stablehlo.subtract"(%p8, %224) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %226 = "stablehlo.broadcast_in_dim"(%121) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<8x1xf32>
    %227 = "stablehlo.multiply"(%226, %p25) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
    %228 = "stablehlo.subtract"(%4, %121) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %229 = "stablehlo.broadcast_in_dim"(%228) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<8x1xf32>
    %230 = "stablehlo.multiply"(%229, %92) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
    %231 = "stablehlo.add"(%227, %230) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
    %232 = "stablehlo.broadcast_in_dim"(%124) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<8x1xf32>
    %233 = "stablehlo.multiply"(%231, %232) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
    %234 = "stablehlo.broadcast_in_dim"(%125) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<8x1xf32>
    %235 = "stablehlo.multiply"(%234, %p26) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
    %236 = "stablehlo.subtract"(%4, %125) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %237 = "stablehlo.multiply"(%92, %92) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
    %238 = "stablehlo.broadcast_in_dim"(%236) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<8x1xf32>
    %239 = "stablehlo.multiply"(%238, %237) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
    %240 = "stablehlo.add"(%235, %239) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
    %241 = "stablehlo.broadcast_in_dim"(%128) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<8x1xf32>
    %242 = "stablehlo.multiply"(%240, %241) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
    %243 = "stablehlo.sqrt"(%242) : (tensor<8x1xf32>) -> tensor<8x1xf32>
    %244 = "stablehlo.broadcast_in_dim"(%129) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<8x1xf32>
    %245 = "stablehlo.add"(%243, %244) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
    %246 = "stablehlo.broadcast_in_dim"(%p15) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<8x1xf32>
    %247 = "stablehlo.multiply"(%246, %233) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
    %248 = "stablehlo.divide"(%247, %245) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
    %249 = "stablehlo.subtract"(%p10, %248) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
    %250 = "stablehlo.broadcast_in_dim"(%121) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %251 = "stablehlo.multiply"(%250, %p27) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %252 = "stablehlo.subtract"(%4, %121) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %253 = "stablehlo.broadcast_in_dim"(%252) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %254 = "stablehlo.multiply"(%253, %90) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %255 = "stablehlo.add"(%251, %254) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %256 = "stablehlo.broadcast_in_dim"(%124) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %257 = "stablehlo.multiply"(%255, %256) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %258 = "stablehlo.broadcast_in_dim"(%125) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %259 = "stablehlo.multiply"(%258, %p28) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %260 = "stablehlo.subtract"(%4, %125) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %261 = "stablehlo.multiply"(%90, %90) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %262 = "stablehlo.broadcast_in_dim"(%260) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %263 = "stablehlo.multiply"(%262, %261) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %264 = "stablehlo.add"(%259, %263) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %265 = "stablehlo.broadcast_in_dim"(%128) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %266 = "stablehlo.multiply"(%264, %265) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %267 = "stablehlo.sqrt"(%266) : (tensor<1xf32>) -> tensor<1xf32>
    %268 = "stablehlo.broadcast_in_dim"(%129) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %269 = "stablehlo.add"(%267, %268) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %270 = "stablehlo.broadcast_in_dim"(%p15) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<1xf32>
    %271 = "stablehlo.multiply"(%270, %257) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %272 = "stablehlo.divide"(%271, %269) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %273 = "stablehlo.subtract"(%p11, %272) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %274 = "stablehlo.reshape"(%58) : (tensor<f32>) -> tensor<1xf32>
    %275 = "stablehlo.reshape"(%59) : (tensor<f32>) -> tensor<1xf32>
    %276 = "stablehlo.convert"(%77) : (tensor<f64>) -> tensor<f32>
    %277 = "stablehlo.reshape"(%276) : (tensor<f32>) -> tensor<1xf32>
    %278 = "stablehlo.concatenate"(%274, %275, %277) { dimension = 0 : i64 } : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<3xf32>
    return %30, %153, %177, %17, %22, %6, %201, %225, %249, %273, %116, %75, %76, %119, %135, %144, %159, %168, %183, %192, %207, %216, %231, %240, %255, %264, %278 : tensor<3xui64>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1x2x4xf32>, tensor<2x4xf32>, tensor<8x1xf32>, tensor<1xf32>, tensor<i64>, tensor<f64>, tensor<f64>, tensor<i64>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<3xf32>
  }
}
