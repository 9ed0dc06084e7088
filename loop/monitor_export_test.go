package loop

var AutoMode = autoMode
