package child

const (
	sysTimerfdCreate  = 85
	sysTimerfdSettime = 86
	sysSignalfd4      = 74
	sysSetns          = 268
)
