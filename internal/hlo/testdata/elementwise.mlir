module @elementwise {
  func.func public @main(%p0: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %0 = "stablehlo.constant"() { value = dense<0.5> : tensor<f32> } : () -> tensor<f32>
    %1 = "stablehlo.broadcast_in_dim"(%0) { broadcast_dimensions = array<i64> } : (tensor<f32>) -> tensor<2x3xf32>
    %2 = "stablehlo.add"(%p0, %1) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %3 = "stablehlo.tanh"(%2) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    return %3, %p0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}
