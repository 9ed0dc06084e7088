module @steps {
  func.func public @main(%p0: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %p1: tensor<10x2xf32>, %p2: tensor<i32>) -> (tensor<2xf32>, tensor<10xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %length = stablehlo.constant dense<10> : tensor<i32>
    %times = stablehlo.minimum %p2, %length : tensor<i32>
    %empty1 = stablehlo.constant dense<0.0> : tensor<10xf32>
    %r:5 = "stablehlo.while"(%zero, %times, %p0, %p1, %empty1) ({
    ^bb0(%c0: tensor<i32>, %c1: tensor<i32>, %c2: tensor<2xf32>, %c3: tensor<10x2xf32>, %c4: tensor<10xf32>):
      %more = stablehlo.compare LT, %c0, %c1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    }, {
    ^bb0(%b0: tensor<i32>, %b1: tensor<i32>, %b2: tensor<2xf32>, %b3: tensor<10x2xf32>, %b4: tensor<10xf32>):
      %one = stablehlo.constant dense<1> : tensor<i32>
      %start = stablehlo.constant dense<0> : tensor<i32>
      %cut1 = "stablehlo.dynamic_slice"(%b3, %b0, %start) {slice_sizes = array<i64: 1, 2>} : (tensor<10x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
      %in1 = stablehlo.reshape %cut1 : (tensor<1x2xf32>) -> tensor<2xf32>
      %o:2 = func.call @step0(%b2, %in1) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<f32>)
      %row1 = stablehlo.reshape %o#1 : (tensor<f32>) -> tensor<1xf32>
      %out1 = "stablehlo.dynamic_update_slice"(%b4, %row1, %b0) : (tensor<10xf32>, tensor<1xf32>, tensor<i32>) -> tensor<10xf32>
      %count = stablehlo.add %b0, %one : tensor<i32>
      stablehlo.return %count, %b1, %o#0, %b3, %out1 : tensor<i32>, tensor<i32>, tensor<2xf32>, tensor<10x2xf32>, tensor<10xf32>
    }) : (tensor<i32>, tensor<i32>, tensor<2xf32>, tensor<10x2xf32>, tensor<10xf32>) -> (tensor<i32>, tensor<i32>, tensor<2xf32>, tensor<10x2xf32>, tensor<10xf32>)
    return %r#2, %r#4 : tensor<2xf32>, tensor<10xf32>
  }
  func.func private @step0(%p0: tensor<2xf32>, %p1: tensor<2xf32>) -> (tensor<2xf32>, tensor<f32>) {
    %0 = "stablehlo.add"(%p0, %p1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %1 = "stablehlo.dot_general"(%p0, %p1) {
      dot_dimension_numbers = #stablehlo.dot<
  lhs_batching_dimensions = [],
  rhs_batching_dimensions = [],
  lhs_contracting_dimensions = [0],
  rhs_contracting_dimensions = [0]
>,
      precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]
    } : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
    return %0, %1 : tensor<2xf32>, tensor<f32>
  }
}
