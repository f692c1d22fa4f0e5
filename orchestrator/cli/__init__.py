"""The command line. Whoever starts it may stand in a folder of somebody else's: no module there is imported."""

from audits.own.import_path import leave_out_working_folder

leave_out_working_folder()
