module @six_sums {
  sdy.mesh @mesh = <["data"=2]>
  func.func public @main(%x: tensor<2x65536xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<2x65536xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, tensor<2x65536xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, tensor<2x65536xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, tensor<2x65536xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, tensor<2x65536xf64> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, tensor<2x65536xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
    %r:6 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"data"}, {}]>] out_shardings=[<@mesh, [{"data"}, {}]>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}, {}]>, <@mesh, [{"data"}, {}]>] manual_axes={"data"} (%y: tensor<1x65536xf32>) {
      %k0 = stablehlo.constant dense<1.0> : tensor<1x65536xf32>
      %m0 = stablehlo.multiply %y, %k0 : tensor<1x65536xf32>
      %s0 = "stablehlo.all_reduce"(%m0) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %o = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %o : tensor<f32>
      }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids} : (tensor<1x65536xf32>) -> tensor<1x65536xf32>
      %k1 = stablehlo.constant dense<2.0> : tensor<1x65536xf32>
      %m1 = stablehlo.multiply %y, %k1 : tensor<1x65536xf32>
      %s1 = "stablehlo.all_reduce"(%m1) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %o = stablehlo.maximum %a, %b : tensor<f32>
        stablehlo.return %o : tensor<f32>
      }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, use_global_device_ids} : (tensor<1x65536xf32>) -> tensor<1x65536xf32>
      %k2 = stablehlo.constant dense<3.0> : tensor<1x65536xf32>
      %m2 = stablehlo.multiply %y, %k2 : tensor<1x65536xf32>
      %s2 = "stablehlo.all_reduce"(%m2) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %o = stablehlo.minimum %a, %b : tensor<f32>
        stablehlo.return %o : tensor<f32>
      }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, use_global_device_ids} : (tensor<1x65536xf32>) -> tensor<1x65536xf32>
      %k3 = stablehlo.constant dense<4.0> : tensor<1x65536xf32>
      %m3 = stablehlo.multiply %y, %k3 : tensor<1x65536xf32>
      %s3 = "stablehlo.all_reduce"(%m3) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %o = stablehlo.multiply %a, %b : tensor<f32>
        stablehlo.return %o : tensor<f32>
      }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 4, type = 1>, use_global_device_ids} : (tensor<1x65536xf32>) -> tensor<1x65536xf32>
      %k4 = stablehlo.constant dense<5.0> : tensor<1x65536xf32>
      %m4 = stablehlo.multiply %y, %k4 : tensor<1x65536xf32>
      %c4 = stablehlo.convert %m4 : (tensor<1x65536xf32>) -> tensor<1x65536xf64>
      %s4 = "stablehlo.all_reduce"(%c4) ({
      ^bb0(%a: tensor<f64>, %b: tensor<f64>):
        %o = stablehlo.add %a, %b : tensor<f64>
        stablehlo.return %o : tensor<f64>
      }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>, use_global_device_ids} : (tensor<1x65536xf64>) -> tensor<1x65536xf64>
      %k5 = stablehlo.constant dense<6.0> : tensor<1x65536xf32>
      %m5 = stablehlo.multiply %y, %k5 : tensor<1x65536xf32>
      %c5 = stablehlo.convert %m5 : (tensor<1x65536xf32>) -> tensor<1x65536xi32>
      %s5 = "stablehlo.all_reduce"(%c5) ({
      ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        %o = stablehlo.add %a, %b : tensor<i32>
        stablehlo.return %o : tensor<i32>
      }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 6, type = 1>, use_global_device_ids} : (tensor<1x65536xi32>) -> tensor<1x65536xi32>
      sdy.return %s0, %s1, %s2, %s3, %s4, %s5 : tensor<1x65536xf32>, tensor<1x65536xf32>, tensor<1x65536xf32>, tensor<1x65536xf32>, tensor<1x65536xf64>, tensor<1x65536xi32>
    } : (tensor<2x65536xf32>) -> (tensor<2x65536xf32>, tensor<2x65536xf32>, tensor<2x65536xf32>, tensor<2x65536xf32>, tensor<2x65536xf64>, tensor<2x65536xi32>)
    return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<2x65536xf32>, tensor<2x65536xf32>, tensor<2x65536xf32>, tensor<2x65536xf32>, tensor<2x65536xf64>, tensor<2x65536xi32>
  }
}
